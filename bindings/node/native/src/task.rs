//! Calls that JavaScript awaits: at once, in the pool of libuv, or, when they may take long, in a thread of their own.
//!
//! The pool has four threads, which Node's file system, name look-ups and cryptography use too, and the end of the process waits for what
//! runs there. So a compaction or a verification is not run in it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use napi::bindgen_prelude::{AsyncTask, Either, Object, ToNapiValue, TypeName};
use napi::{Env, JsDeferred, Task};

use crate::error::{Fail, Outcome, panicked};
use crate::in_place::InPlace;

/// Runs something of ours; a panic becomes an error.
pub fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Runs something on the thread of the event loop.
pub fn sync<T>(env: &Env, work: impl FnOnce() -> Outcome<T>) -> napi::Result<T> {
    guarded(work).map_err(|fail| fail.into_js(env))
}

type Work<O> = Box<dyn FnOnce() -> Outcome<O> + Send>;

/// Work for the pool, and what it gave.
pub struct Job<O>(Option<Work<O>>);

impl<O: ToNapiValue + TypeName + Send + 'static> Task for Job<O> {
    type Output = Outcome<O>;
    type JsValue = O;

    fn compute(&mut self) -> napi::Result<Outcome<O>> {
        let work = self.0.take();
        Ok(work.map_or(Err(Fail::NotOpen), guarded))
    }

    fn resolve(&mut self, env: Env, output: Outcome<O>) -> napi::Result<O> {
        output.map_err(|fail| fail.into_js(&env))
    }
}

/// Runs `work` in the pool. What is wrong already, as with arguments, is told in the same way: the promise is rejected.
pub fn pooled<O: ToNapiValue + TypeName + Send + 'static>(
    prepare: impl FnOnce() -> Outcome<Work<O>>,
) -> AsyncTask<Job<O>> {
    let work = guarded(prepare);
    AsyncTask::new(Job(Some(work.unwrap_or_else(|fail| Box::new(move || Err(fail))))))
}

/// What a call gave at once, or the promise of it.
pub type Reply<H, O = H> = Either<H, AsyncTask<Job<O>>>;

/// Runs `work` at once where `place` lets it, and else in the pool. `here` is whether it may run at once at all.
pub fn here_or_pooled<O: ToNapiValue + TypeName + Send + 'static>(
    env: &Env,
    place: &InPlace,
    here: bool,
    prepare: impl FnOnce() -> Outcome<Work<O>>,
) -> napi::Result<Reply<O>> {
    if !here || !place.is_allowed() {
        return Ok(Either::B(pooled(prepare)));
    }
    sync(env, || place.timed(prepare()?)).map(Either::A)
}

type Settle<O> = Box<dyn FnOnce(Env) -> napi::Result<O> + Send>;

/// Runs `work` in a thread of its own.
pub fn in_thread<O: ToNapiValue + Send + 'static>(
    env: &Env,
    prepare: impl FnOnce() -> Outcome<Work<O>>,
) -> napi::Result<Object<'_>> {
    let work = sync(env, prepare)?;
    let (deferred, promise) = env.create_deferred::<O, Settle<O>>()?;
    let deferred: JsDeferred<O, Settle<O>> = deferred;
    let run = {
        let deferred = deferred.clone();
        move || {
            let done = guarded(work);
            deferred.resolve(Box::new(move |env| done.map_err(|fail| fail.into_js(&env))));
        }
    };
    if let Err(e) = thread::Builder::new().name("esker-node".to_string()).spawn(run) {
        let fail = Fail::Invalid(format!("no thread could be started: {e}"));
        deferred.reject(fail.into_js(env));
    }
    Ok(promise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_says_what_it_said() {
        let text = guarded::<()>(|| panic!("of {}", "ours"));
        assert!(matches!(text, Err(Fail::Panic(what)) if what == "of ours"));
        let other = guarded::<()>(|| std::panic::panic_any(7));
        assert!(matches!(other, Err(Fail::Panic(what)) if what == "a panic"));
    }
}

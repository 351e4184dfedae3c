//! Counts the calls into a C library, for audits: each function of a table of them ([`super::library::c_api`]) is
//! replaced by one that counts and goes on to it. Without an audit nothing stands in between.

use crate::calls::{self, CCalls};
use std::mem::transmute_copy;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function that is counted: its calls, and where it is.
pub struct Slot {
    calls: CCalls,
    real: AtomicUsize,
}

impl Slot {
    /// Of a function that is not loaded yet.
    pub const fn new() -> Slot {
        Slot { calls: CCalls::new(), real: AtomicUsize::new(0) }
    }
}

/// A type that stands for a function, so that code can be made for it.
pub trait Place: 'static {
    /// What is known of it.
    fn slot() -> &'static Slot;
}

/// A C function that can be counted.
pub trait Counted: Copy {
    /// The same behind a count, which is told by this name.
    fn counted<P: Place>(self, name: String) -> Self;
}

/// `function`, counted where this process is audited.
pub fn traced<P: Place, F: Counted>(function: F, name: String) -> F {
    if calls::are_counted() { function.counted::<P>(name) } else { function }
}

macro_rules! counted {
    ($($call:ident($($arg:ident: $type:ident),*);)*) => {$(
        /// # Safety
        /// As the function that `P` stands for, which was put there with this signature.
        unsafe extern "C" fn $call<P: Place, $($type,)* R>($($arg: $type),*) -> R {
            let slot = P::slot();
            slot.calls.note();
            let real = slot.real.load(Ordering::Relaxed);
            // SAFETY: `counted` stored a function of this very type, and only it leads here.
            let real: unsafe extern "C" fn($($type),*) -> R = unsafe { transmute_copy(&real) };
            // SAFETY: the caller's promise.
            unsafe { real($($arg),*) }
        }

        impl<$($type,)* R> Counted for unsafe extern "C" fn($($type),*) -> R {
            fn counted<P: Place>(self, name: String) -> Self {
                let slot = P::slot();
                slot.real.store(self as usize, Ordering::Relaxed);
                slot.calls.enter(name);
                $call::<P, $($type,)* R>
            }
        }
    )*};
}

counted! {
    call0();
    call1(a: A);
    call2(a: A, b: B);
    call3(a: A, b: B, c: C);
    call4(a: A, b: B, c: C, d: D);
    call5(a: A, b: B, c: C, d: D, e: E);
    call6(a: A, b: B, c: C, d: D, e: E, f: F);
    call7(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Sum {}
    static SUM: Slot = Slot::new();
    impl Place for Sum {
        fn slot() -> &'static Slot {
            &SUM
        }
    }

    unsafe extern "C" fn sum(a: u8, b: i64) -> i64 {
        i64::from(a) + b
    }

    #[test]
    fn a_counted_function_does_what_it_did_and_is_counted_where_it_is_timed() {
        let counted =
            (sum as unsafe extern "C" fn(u8, i64) -> i64).counted::<Sum>("sum".to_string());
        let timed = calls::begin();
        // SAFETY: it adds.
        assert_eq!(unsafe { counted(2, 40) }, 42);
        timed.end(1);
        // SAFETY: it adds.
        assert_eq!(unsafe { counted(200, -1) }, 199);
        let of_c = calls::counts().library;
        assert!(of_c.contains(&("sum".to_string(), 1, 1)), "{of_c:?}");
    }
}

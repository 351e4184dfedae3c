//! The functions of the JVM that are needed, as far as the calls of this library need them. All `unsafe` that is about JNI is
//! here.
//!
//! Lengths that Java passes beside an array are the array's: `Native.java` is called by our own classes only.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;

use jni_sys::{
    JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jbyteArray, jclass, jint, jlong, jlongArray,
    jmethodID, jobject, jobjectArray, jthrowable, jvalue,
};

use crate::failure::{Failure, Outcome};

/// What is looked up once, when the library is loaded. There is no reference to a class of the package: it would keep the class
/// loader, and so this library, for good.
struct Known {
    /// `OutOfMemoryError` and `byte[]`, by references that keep them.
    out_of_memory: jclass,
    bytes: jclass,
    /// `Native.failure`.
    failure: jmethodID,
    /// `BulkLoad.fill`.
    fill: jmethodID,
}

// SAFETY: global references and method ids may be used by all threads.
unsafe impl Send for Known {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Known {}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// The JVM as one call of Java's sees it, for the thread of that call and as long as it takes; and the class `Native`.
pub struct Env(*mut JNIEnv, jclass);

/// Calls a function of the JVM's table.
macro_rules! jvm {
    ($env:expr, $version:ident.$name:ident($($arg:expr),* $(,)?)) => {
        ((**$env.0).$version.$name)($env.0 $(, $arg)*)
    };
}

/// What a function gives Java when it throws: anything, for Java does not look at it.
pub trait Nothing {
    fn nothing() -> Self;
}

macro_rules! nothing {
    ($($type:ty = $value:expr),*) => { $(impl Nothing for $type { fn nothing() -> $type { $value } })* };
}
nothing!(() = (), bool = false, jint = 0, jlong = 0, jobject = ptr::null_mut());

/// Runs a call of Java's, and throws what fails in it.
///
/// # Safety
/// `env` and `class` are what the JVM passed to the present call.
#[inline]
pub unsafe fn call<T: Nothing>(
    env: *mut JNIEnv,
    class: jclass,
    run: impl FnOnce(&Env) -> Outcome<T>,
) -> T {
    let env = Env(env, class);
    match catch_unwind(AssertUnwindSafe(|| run(&env))) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => {
            env.throw(&failure);
            T::nothing()
        }
        Err(panic) => {
            env.throw(&Failure::from_panic(panic));
            T::nothing()
        }
    }
}

/// A function that Java calls: the class is left out, and what it returns may be a failure.
macro_rules! native {
    ($(fn $name:ident($env:ident $(, $arg:ident: $type:ty)* $(,)?) -> $ret:ty $body:block)*) => { $(
        /// A function of `Native.java`.
        ///
        /// # Safety
        /// Java calls it, with what `Native.java` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $name(
            env: *mut jni_sys::JNIEnv, class: jni_sys::jclass $(, $arg: $type)*
        ) -> $ret {
            let run = |$env: &$crate::env::Env| -> $crate::failure::Outcome<$ret> { $body };
            // SAFETY: Java's call.
            unsafe { $crate::env::call(env, class, run) }
        }
    )* };
}
pub(crate) use native;

impl Env {
    /// Whether an exception is on its way.
    fn thrown(&self) -> Outcome<()> {
        // SAFETY: the table is the JVM's.
        if unsafe { jvm!(self, v1_2.ExceptionCheck()) } { Err(Failure::Thrown) } else { Ok(()) }
    }

    /// An object that the JVM made, or the exception for its failure.
    fn made(&self, object: jobject) -> Outcome<jobject> {
        if object.is_null() { Err(Failure::Thrown) } else { Ok(object) }
    }

    /// Throws a failure, unless something is thrown already.
    #[cold]
    pub fn throw(&self, failure: &Failure) {
        let Some(known) = KNOWN.get() else { return };
        if self.thrown().is_err() {
            return;
        }
        if let Failure::Memory(_) = failure {
            let text = format!("{failure}\0");
            // SAFETY: a class that is kept, and a text that ends in NUL.
            unsafe { jvm!(self, v1_1.ThrowNew(known.out_of_memory, text.as_ptr().cast())) };
            return;
        }
        // Where there is no memory for the message, that is thrown.
        let Ok(message) = self.bytes(failure.to_string().as_bytes()) else { return };
        let arguments =
            [jvalue { i: failure.code() }, jvalue { l: message }, jvalue { i: failure.os_code() }];
        // SAFETY: the method takes a number, bytes and a number, and gives an exception.
        unsafe {
            let exception: jthrowable =
                jvm!(self, v1_1.CallStaticObjectMethodA(self.1, known.failure, arguments.as_ptr()));
            if self.thrown().is_ok() && !exception.is_null() {
                jvm!(self, v1_1.Throw(exception));
            }
        }
    }

    /// The length of an array.
    #[inline]
    pub fn len(&self, array: jobject) -> usize {
        // SAFETY: Java passed an array.
        unsafe { jvm!(self, v1_1.GetArrayLength(array)) as usize }
    }

    /// Copies bytes of an array.
    ///
    /// # Safety
    /// The array has as many from `from` on, and `to` has room for them.
    #[inline]
    pub unsafe fn copy_out(&self, array: jbyteArray, from: usize, len: usize, to: *mut u8) {
        // SAFETY: the caller's.
        unsafe { jvm!(self, v1_1.GetByteArrayRegion(array, from as jint, len as jint, to.cast())) }
    }

    /// Copies bytes into an array that has room for them from `at` on.
    #[inline]
    pub fn copy_in(&self, array: jbyteArray, at: usize, bytes: &[u8]) {
        let (at, len) = (at as jint, bytes.len() as jint);
        // SAFETY: the JVM checks the bounds, and reads no more than `bytes` has.
        unsafe { jvm!(self, v1_1.SetByteArrayRegion(array, at, len, bytes.as_ptr().cast())) }
    }

    /// A new array that has room for so many bytes.
    #[inline]
    pub fn new_bytes(&self, len: usize) -> Outcome<jbyteArray> {
        let len = jint::try_from(len).map_err(|_| Failure::Memory(len))?;
        // SAFETY: a length that is not negative.
        self.made(unsafe { jvm!(self, v1_1.NewByteArray(len)) })
    }

    /// A new array with these bytes.
    #[inline]
    pub fn bytes(&self, bytes: &[u8]) -> Outcome<jbyteArray> {
        let array = self.new_bytes(bytes.len())?;
        self.copy_in(array, 0, bytes);
        Ok(array)
    }

    /// A new array of arrays of bytes, none of them there yet.
    pub fn new_arrays(&self, len: usize) -> Outcome<jobjectArray> {
        let known = KNOWN.get().ok_or(Failure::Thrown)?;
        // SAFETY: a class that is kept.
        self.made(unsafe {
            jvm!(self, v1_1.NewObjectArray(len as jint, known.bytes, ptr::null_mut()))
        })
    }

    /// An element of an array of objects. To be [forgotten](Env::forget): a call has room for some only.
    pub fn element(&self, array: jobjectArray, at: usize) -> Outcome<jobject> {
        // SAFETY: the JVM checks the bounds.
        let element = unsafe { jvm!(self, v1_1.GetObjectArrayElement(array, at as jint)) };
        self.thrown()?;
        self.made(element)
    }

    /// Sets an element of an array of objects.
    pub fn set_element(&self, array: jobjectArray, at: usize, element: jobject) -> Outcome<()> {
        // SAFETY: the JVM checks bounds and class.
        unsafe { jvm!(self, v1_1.SetObjectArrayElement(array, at as jint, element)) };
        self.thrown()
    }

    /// Gives a reference to an object back before the call ends.
    pub fn forget(&self, object: jobject) {
        // SAFETY: a local reference of this call, which is not used again.
        unsafe { jvm!(self, v1_1.DeleteLocalRef(object)) }
    }

    /// The numbers of an array.
    pub fn longs(&self, array: jlongArray) -> Vec<jlong> {
        let mut longs = vec![0; self.len(array)];
        // SAFETY: as many as the array has, and as there is room for.
        unsafe {
            let len = longs.len() as jint;
            jvm!(self, v1_1.GetLongArrayRegion(array, 0, len, longs.as_mut_ptr()));
        }
        longs
    }

    /// Sets the numbers of an array, which has room for them.
    pub fn set_longs(&self, array: jlongArray, longs: &[jlong]) {
        // SAFETY: the JVM checks the bounds.
        unsafe {
            jvm!(self, v1_1.SetLongArrayRegion(array, 0, longs.len() as jint, longs.as_ptr()))
        }
    }

    /// The address of a direct buffer.
    pub fn address(&self, buffer: jobject) -> Outcome<*mut u8> {
        // SAFETY: Java passed a buffer.
        let address = unsafe { jvm!(self, v1_4.GetDirectBufferAddress(buffer)) };
        if address.is_null() {
            return Err(Failure::Invalid("the buffer has no address".to_string()));
        }
        Ok(address.cast())
    }

    /// Copies bytes into a direct buffer.
    ///
    /// # Safety
    /// There is room for them from `at` on, and they lie where no buffer that can be written is.
    pub unsafe fn copy_into_buffer(&self, buffer: jobject, at: usize, bytes: &[u8]) -> Outcome<()> {
        let to = self.address(buffer)?;
        // SAFETY: the caller's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), bytes.len()) };
        Ok(())
    }

    /// A direct buffer over memory that its user keeps.
    ///
    /// # Safety
    /// As many bytes are there as long as the buffer is used.
    pub unsafe fn buffer(&self, address: *mut c_void, len: jlong) -> Outcome<jobject> {
        // SAFETY: the caller's.
        self.made(unsafe { jvm!(self, v1_4.NewDirectByteBuffer(address, len)) })
    }

    /// Asks a bulk load's source for a chunk; `None` at the end.
    pub fn fill(&self, source: jobject) -> Outcome<Option<jbyteArray>> {
        let known = KNOWN.get().ok_or(Failure::Thrown)?;
        // SAFETY: Java passed an object of the class that has this method, which takes nothing and gives bytes.
        let chunk = unsafe { jvm!(self, v1_1.CallObjectMethodA(source, known.fill, ptr::null())) };
        self.thrown()?;
        Ok((!chunk.is_null()).then_some(chunk))
    }

    /// A class of Java's own, by a reference that keeps it.
    fn class(&self, name: &'static std::ffi::CStr) -> Option<jclass> {
        // SAFETY: a name that ends in NUL; what is missing is null, with an exception that the JVM then throws.
        unsafe {
            let class = jvm!(self, v1_1.FindClass(name.as_ptr()));
            if class.is_null() {
                return None;
            }
            let kept = jvm!(self, v1_1.NewGlobalRef(class));
            self.forget(class);
            (!kept.is_null()).then_some(kept)
        }
    }

    fn look_up(&self) -> Option<Known> {
        // SAFETY: names that end in NUL, and classes of the present call. What is missing is null, with an exception that the
        // JVM then throws. Method ids are good as long as their classes are loaded, and so as long as this library is.
        let (failure, fill) = unsafe {
            let native = jvm!(self, v1_1.FindClass(c"io/esker/Native".as_ptr()));
            if native.is_null() {
                return None;
            }
            let signature = c"(I[BI)Ljava/lang/RuntimeException;".as_ptr();
            let failure =
                jvm!(self, v1_1.GetStaticMethodID(native, c"failure".as_ptr(), signature));
            if failure.is_null() {
                return None;
            }
            let load = jvm!(self, v1_1.FindClass(c"io/esker/BulkLoad".as_ptr()));
            if load.is_null() {
                return None;
            }
            (failure, jvm!(self, v1_1.GetMethodID(load, c"fill".as_ptr(), c"()[B".as_ptr())))
        };
        if fill.is_null() {
            return None;
        }
        let out_of_memory = self.class(c"java/lang/OutOfMemoryError")?;
        Some(Known { out_of_memory, bytes: self.class(c"[B")?, failure, fill })
    }
}

/// The environment of the thread that loads or unloads the library.
///
/// # Safety
/// `vm` is the JVM's.
unsafe fn present(vm: *mut JavaVM) -> Option<Env> {
    let mut env: *mut c_void = ptr::null_mut();
    // SAFETY: the caller's; the thread is one of Java's.
    let got = unsafe { ((**vm).v1_2.GetEnv)(vm, &mut env, JNI_VERSION_1_8) };
    (got == JNI_OK && !env.is_null()).then(|| Env(env.cast(), ptr::null_mut()))
}

/// Called when Java has loaded the library: looks up what it needs.
///
/// # Safety
/// The JVM calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _: *mut c_void) -> jint {
    let ready = catch_unwind(|| {
        // SAFETY: the JVM's call.
        let env = unsafe { present(vm) }?;
        let known = env.look_up()?;
        drop(KNOWN.set(known));
        Some(JNI_VERSION_1_8)
    });
    ready.ok().flatten().unwrap_or(jni_sys::JNI_ERR)
}

/// Called when the class loader that loaded the library is collected.
///
/// # Safety
/// The JVM calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn JNI_OnUnload(vm: *mut JavaVM, _: *mut c_void) {
    let ended = catch_unwind(|| {
        // SAFETY: the JVM's call; nothing of the library is called any more.
        unsafe {
            let (Some(env), Some(known)) = (present(vm), KNOWN.get()) else { return };
            for class in [known.out_of_memory, known.bytes] {
                jvm!(env, v1_1.DeleteGlobalRef(class));
            }
        }
    });
    drop(ended);
}

//! Tensors between pages that nothing may touch: an access outside of one ends the test.
//!
//! While [`guarded`] runs, what compiled code allocates and the zeroed bytes of tensors stand in pages of
//! their own, directly before or behind a page without access. Both ask for 64 bytes more than they use,
//! to align them; what is behind the last element is therefore less than a cache line. What compiled code
//! allocates is full of NaN (and of -1) with the page before it, of low integers with the page behind it.
//!
//! Compiled code finds the `malloc` of the program that it is loaded into. Rust's own allocations do not
//! go through that one, so that it is only for what is compiled or written in C.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

const PAGE: usize = 4096;
/// Address space for guarded memory, which is never used twice.
const REGION: usize = 1 << 38;
/// What is asked for to align the data.
const ALIGNMENT: usize = 64;

/// Which side of tensors a page without access is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Directly before the first element.
    Start,
    /// Directly behind the last element, up to alignment.
    End,
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_free(pointer: *mut c_void);
}

thread_local! {
    static SIDE: Cell<Option<Side>> = const { Cell::new(None) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// The start of the region, 0 before it is reserved; behind it, the pages of each block.
static START: AtomicUsize = AtomicUsize::new(0);
/// The next page of the region that is free.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The side for code of so many threads: none for several. OpenMP's runtime may ask for memory in a call, and uses
/// the bytes for alignment as well.
pub fn side_of_threads(side: Side, threads: usize) -> Option<Side> {
    (threads == 1).then_some(side)
}

/// Runs a closure with guarded memory if a side is given. Returns its result and the number of guarded blocks.
pub fn guarded<T>(side: impl Into<Option<Side>>, run: impl FnOnce() -> T) -> (T, usize) {
    reserve();
    COUNT.set(0);
    SIDE.set(side.into());
    let result = run();
    SIDE.set(None);
    (result, COUNT.get())
}

/// Maps address space, without access for `REGION` bytes.
fn reserve() {
    if START.load(Ordering::Acquire) != 0 {
        return;
    }
    let table = REGION / PAGE * size_of::<AtomicU32>();
    // SAFETY: new mappings are nobody's; all flags are documented.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(ptr::null_mut(), REGION + table, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(libc::mprotect(start.byte_add(REGION), table, access), 0);
        // Of two threads, one is too late; its mapping is address space only.
        let start = start.expose_provenance();
        let _ = START.compare_exchange(0, start, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// How many pages the block at a page of the region has.
fn num_pages(page: usize) -> &'static AtomicU32 {
    let place = START.load(Ordering::Acquire) + REGION + page * size_of::<AtomicU32>();
    // SAFETY: the table behind the region has an entry for each page, and is never unmapped.
    unsafe { &*ptr::with_exposed_provenance::<AtomicU32>(place) }
}

/// The page of the region that an address is in.
fn page_of(pointer: *mut c_void) -> Option<usize> {
    let start = START.load(Ordering::Acquire);
    let offset = pointer.addr().checked_sub(start).filter(|it| start != 0 && *it < REGION);
    offset.map(|offset| offset / PAGE)
}

/// A block of zeros whose data is `size` bytes without those for alignment; none if nothing is guarded.
fn allocate(size: usize) -> Option<(*mut c_void, usize)> {
    let side = SIDE.get()?;
    let data = size.checked_sub(ALIGNMENT)?;
    let pages = data.div_ceil(PAGE).max(1);
    // A page without access behind it is before the next one.
    let first = NEXT.fetch_add(pages + 1, Ordering::Relaxed);
    if REGION / PAGE <= first + pages {
        return None;
    }
    num_pages(first).store(pages as u32, Ordering::Relaxed);
    let start = START.load(Ordering::Acquire) + first * PAGE;
    let pointer = ptr::with_exposed_provenance_mut::<c_void>(start);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: these pages of the region are no other block's.
    if unsafe { libc::mprotect(pointer, pages * PAGE, access) } != 0 {
        return None;
    }
    COUNT.set(COUNT.get() + 1);
    let place = match side {
        Side::Start => start,
        Side::End => (start + pages * PAGE - data) & !(ALIGNMENT - 1),
    };
    Some((ptr::with_exposed_provenance_mut(place), start + pages * PAGE - place))
}

/// Gives a block of the region back; false if the pointer is none of those.
fn release(pointer: *mut c_void) -> bool {
    let Some(page) = page_of(pointer) else { return false };
    let pages = num_pages(page).swap(0, Ordering::Relaxed) as usize;
    let start = START.load(Ordering::Acquire) + page * PAGE;
    let start = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages of a block, which is not used any more.
    unsafe {
        libc::madvise(start, pages * PAGE, libc::MADV_DONTNEED);
        libc::mprotect(start, pages * PAGE, libc::PROT_NONE);
    }
    true
}

/// What compiled code calls.
///
/// # Safety
/// That of `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match allocate(size) {
        Some((pointer, room)) => {
            let fill = if SIDE.get() == Some(Side::End) { 0x80 } else { 0xff };
            // SAFETY: so many bytes are there.
            unsafe { ptr::write_bytes(pointer.cast::<u8>(), fill, room) };
            pointer
        }
        // SAFETY: as for this function.
        None => unsafe { __libc_malloc(size) },
    }
}

/// What compiled code calls.
///
/// # Safety
/// That of `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(pointer: *mut c_void) {
    if !release(pointer) {
        // SAFETY: as for this function.
        unsafe { __libc_free(pointer) };
    }
}

/// What libraries call, with blocks that they allocated while memory was guarded.
///
/// # Safety
/// That of `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
    let Some(page) = page_of(pointer) else {
        // SAFETY: as for this function.
        return unsafe { __libc_realloc(pointer, size) };
    };
    let pages = num_pages(page).load(Ordering::Relaxed) as usize;
    let end = START.load(Ordering::Acquire) + (page + pages) * PAGE;
    // SAFETY: as for this function; the block is there up to the end of its pages.
    unsafe {
        let copy = malloc(size);
        if !copy.is_null() {
            ptr::copy_nonoverlapping(
                pointer.cast::<u8>(),
                copy.cast::<u8>(),
                size.min(end - pointer.addr()),
            );
            free(pointer);
        }
        copy
    }
}

/// The allocator of the tests.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The alignment that `malloc` gives without being asked.
const PLAIN: usize = 16;

// SAFETY: the functions of the C library and `allocate` keep what is asked of an allocator; blocks of the
// latter are bytes, which have no alignment.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for this function.
        unsafe {
            match layout.align() <= PLAIN {
                true => __libc_malloc(layout.size()).cast(),
                false => __libc_memalign(layout.align(), layout.size()).cast(),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = if layout.align() == 1 { allocate(layout.size()) } else { None };
        match block {
            Some((pointer, _)) => pointer.cast(),
            // SAFETY: as for this function; fresh memory is written before it is used.
            None if layout.align() <= PLAIN => unsafe { __libc_calloc(1, layout.size()).cast() },
            None => unsafe {
                let pointer = self.alloc(layout);
                if !pointer.is_null() {
                    ptr::write_bytes(pointer, 0, layout.size());
                }
                pointer
            },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for this function. Guarded blocks are never made larger.
        unsafe {
            if layout.align() <= PLAIN && page_of(pointer.cast()).is_none() {
                return __libc_realloc(pointer.cast(), size).cast();
            }
            let Ok(new) = Layout::from_size_align(size, layout.align()) else {
                return ptr::null_mut();
            };
            let copy = self.alloc(new);
            if !copy.is_null() {
                ptr::copy_nonoverlapping(pointer, copy, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            copy
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _layout: Layout) {
        // SAFETY: as for this function.
        unsafe { free(pointer.cast()) };
    }
}

#[test]
fn accesses_outside_of_tensors_end_the_process() {
    for (side, offset) in [(Side::Start, -1_isize), (Side::End, 4096)] {
        // SAFETY: the child touches one byte and leaves; it allocates nothing.
        unsafe {
            let (block, count) = guarded(side, || malloc(4096 + ALIGNMENT).cast::<u8>());
            assert_eq!(count, 1);
            let is_low = *block.cast::<i64>() < i64::MIN / 2;
            assert!(if side == Side::Start { (*block.cast::<f64>()).is_nan() } else { is_low });
            let child = libc::fork();
            if child == 0 {
                libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
                ptr::read_volatile(block.offset(offset));
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert!(libc::WIFSIGNALED(status), "{side:?}: {status}");
            free(block.cast());
        }
    }
}

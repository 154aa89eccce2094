//! Modules in parts, so that several threads optimize them and generate code.
//!
//! The outlined functions of a program (`imap-outline-functions`), which LLVM never inlines, are divided among the parts.
//! The first part also contains all other functions. Every part contains its own copies of constants and built-ins. The
//! division depends only on the module, so the generated code does not depend on the number of threads. A thread reads
//! the parts that it compiles from the bitcode of the whole module.

use super::{
    Artifact, Cache, CodeGenerator, Context, Module, OwnedModule, cache::Key, instructions, link,
    name, read_lazily,
};
use crate::backend::Error;
use llvm_sys::{
    LLVMAttributeFunctionIndex, LLVMLinkage, LLVMVisibility,
    bit_reader::LLVMParseBitcodeInContext2,
    bit_writer::LLVMWriteBitcodeToMemoryBuffer,
    core::*,
    prelude::{LLVMMemoryBufferRef, LLVMValueRef},
};
use std::{
    cmp::Reverse,
    collections::HashMap,
    iter, mem, ptr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};
use tc_passes::target::Machine;

/// The most parts of a module.
const MAX_PARTS: usize = 8;
/// Fewer instructions are not worth a part: LLVM compiles them in about five milliseconds.
const MIN_INSTRUCTIONS: usize = 200;

// SAFETY: a module has an LLVM context and a code generator of its own, which no other thread has.
unsafe impl Send for Module {}

/// A module, or the parts of one. They are read and optimized when they are used.
pub(crate) struct Parts(Vec<Mutex<Part>>);

struct Part {
    source: Source,
    is_optimized: bool,
}

enum Source {
    Module(Module),
    /// A division, and the number of a part that is not read yet.
    Division(Arc<Division>, usize),
}

/// What parts are read from.
struct Division {
    bitcode: Bitcode,
    /// The parts of functions; the first one has all others.
    part_of: HashMap<String, usize>,
    target: Machine,
    /// Functions that none of the parts defines.
    elsewhere: Vec<String>,
}

impl Division {
    /// Reads a part.
    fn read(&self, number: usize) -> Result<Module, Error> {
        let (generator, context) = (CodeGenerator::new(&self.target)?, Context::new());
        // SAFETY: the bitcode outlives the module, which linking consumes below.
        let all = unsafe { read_lazily(self.bitcode.bytes(), &context) }?;
        // SAFETY: an empty module of the context, with the properties of the other one.
        let raw = OwnedModule(unsafe {
            let raw = LLVMModuleCreateWithNameInContext(c"".as_ptr(), context.raw);
            LLVMSetTarget(raw, LLVMGetTarget(all.0));
            LLVMSetDataLayout(raw, LLVMGetDataLayoutStr(all.0));
            raw
        });
        let (target, elsewhere) = (self.target.clone(), self.elsewhere.clone());
        let mut part = Module { raw: all, generator, context, target, elsewhere };
        part.drop_others(&self.part_of, number);
        let all = mem::replace(&mut part.raw, raw);
        let is_linked = link(&part.raw, all);
        part.context.check("cannot divide the program", !is_linked)?;
        Ok(part)
    }
}

impl Part {
    fn new(source: Source) -> Mutex<Self> {
        Mutex::new(Self { source, is_optimized: false })
    }

    fn module(&mut self) -> Result<&mut Module, Error> {
        if let Source::Division(division, number) = &self.source {
            self.source = Source::Module(division.read(*number)?);
        }
        match &mut self.source {
            Source::Module(module) => Ok(module),
            Source::Division(..) => unreachable!("it was read"),
        }
    }

    fn optimized(&mut self) -> Result<&Module, Error> {
        if !self.is_optimized {
            self.module()?.run_passes()?;
            self.is_optimized = true;
        }
        self.module().map(|it| &*it)
    }

    /// The object, and whether it was in the cache.
    fn object(&mut self, cache: Option<&Cache>) -> Result<(Vec<u8>, bool), Error> {
        // Keys are of modules that are not optimized.
        let cache = cache.filter(|_| !self.is_optimized);
        let entry = match cache {
            Some(cache) => Some((cache, Key::of(self.module()?))),
            None => None,
        };
        if let Some(object) = entry.and_then(|(cache, key)| cache.get(&key)) {
            return Ok((object, true));
        }
        let object = self.optimized()?.emit(Artifact::Object)?;
        if let Some((cache, key)) = entry {
            cache.put(&key, &object);
        }
        Ok((object, false))
    }
}

impl Parts {
    /// Divides a module that has not been optimized into parts of about the same size.
    ///
    /// # Errors
    /// LLVM cannot read its own bitcode.
    pub fn of(mut module: Module) -> Result<Self, Error> {
        module.prepare();
        let functions = module.functions().into_iter().filter(|it| is_divisible(*it));
        let mut sizes: Vec<_> = functions.map(|it| (instructions(it).len(), it)).collect();
        let total: usize = sizes.iter().map(|(size, _)| size).sum();
        let num_parts = (total / MIN_INSTRUCTIONS).min(MAX_PARTS).min(sizes.len());
        if num_parts < 2 {
            return Ok(Self(vec![Part::new(Source::Module(module))]));
        }
        // The largest first, each to the part with the least so far.
        sizes.sort_by_key(|(size, _)| Reverse(*size));
        let (mut filled, mut part_of) = (vec![0; num_parts], HashMap::new());
        for (size, function) in sizes {
            let part = (0..num_parts).min_by_key(|part| filled[*part]).unwrap_or(0);
            filled[part] += size;
            part_of.insert(name(function), part);
            // SAFETY: a function of the module.
            unsafe {
                LLVMSetLinkage(function, LLVMLinkage::LLVMExternalLinkage);
                LLVMSetVisibility(function, LLVMVisibility::LLVMHiddenVisibility);
            }
        }
        let bitcode = Bitcode::of(&module);
        let (target, elsewhere) = (module.target.clone(), module.elsewhere.clone());
        module.drop_others(&part_of, 0);
        let division = Arc::new(Division { bitcode, part_of, target, elsewhere });
        let rest = (1..num_parts).map(|number| Source::Division(division.clone(), number));
        Ok(Self(iter::once(Source::Module(module)).chain(rest).map(Part::new).collect()))
    }

    /// The number of parts.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The objects of the parts, made by so many threads, and how many of them were in the cache.
    ///
    /// # Errors
    /// LLVM rejects a part.
    pub fn objects(
        &self,
        threads: usize,
        cache: Option<&Cache>,
    ) -> Result<(Vec<Vec<u8>>, usize), Error> {
        let objects = self.each(threads, |part| part.object(cache))?;
        let num_cached = objects.iter().filter(|(_, is_cached)| *is_cached).count();
        if let Some(cache) = cache.filter(|_| num_cached < objects.len()) {
            cache.trim();
        }
        Ok((objects.into_iter().map(|(object, _)| object).collect(), num_cached))
    }

    /// Does some work on each part, in so many threads. The results are in the order of the parts.
    fn each<T: Send>(
        &self,
        threads: usize,
        work: impl Fn(&mut Part) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let next = AtomicUsize::new(0);
        let run = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = self.0.get(number) else { return done };
                done.push((number, work(&mut lock(part))));
            }
        };
        let mut done = thread::scope(|scope| {
            let others = (1..threads.min(self.0.len())).map(|_| scope.spawn(run));
            let others: Vec<_> = others.collect();
            let mut done = run();
            for other in others {
                match other.join() {
                    Ok(found) => done.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        });
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// Uses the whole module, the parts of which are optimized by so many threads.
    ///
    /// # Errors
    /// The work's, or LLVM rejects a part, or cannot read its own bitcode or link it.
    pub fn whole<T>(
        &self,
        threads: usize,
        work: impl FnOnce(&Module) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.each(threads, |part| part.optimized().map(drop))?;
        let [first, rest @ ..] = &self.0[..] else { unreachable!("a module has a part") };
        if rest.is_empty() {
            return work(lock(first).module()?);
        }
        let mut first = lock(first);
        let first = first.module()?;
        let (target, elsewhere) = (first.target.clone(), first.elsewhere.clone());
        let (generator, context) = (CodeGenerator::new(&target)?, Context::new());
        let raw = Bitcode::of(first).parse(&context)?;
        for part in rest {
            let part = Bitcode::of(lock(part).module()?).parse(&context)?;
            let is_linked = link(&raw, part);
            context.check("cannot link the parts of the program", !is_linked)?;
        }
        let whole = Module { raw, generator, context, target, elsewhere };
        for function in whole.functions() {
            // SAFETY: a function of the module. Only the parts refer to hidden functions, so these become internal.
            unsafe {
                if LLVMGetVisibility(function) == LLVMVisibility::LLVMHiddenVisibility
                    && LLVMIsDeclaration(function) == 0
                {
                    LLVMSetVisibility(function, LLVMVisibility::LLVMDefaultVisibility);
                    LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
                }
            }
        }
        work(&whole)
    }
}

impl Module {
    /// Keeps the functions of part `number`. Other parts define the others, so LLVM drops their bodies here.
    fn drop_others(&mut self, part_of: &HashMap<String, usize>, number: usize) {
        for function in self.functions() {
            let name = name(function);
            // SAFETY: a function of the module.
            unsafe {
                let is_symbol = LLVMGetLinkage(function) == LLVMLinkage::LLVMExternalLinkage
                    && LLVMIsDeclaration(function) == 0;
                if is_symbol && part_of.get(&name).copied().unwrap_or(0) != number {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMAvailableExternallyLinkage);
                    self.elsewhere.push(name);
                }
            }
        }
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().expect("a thread that fails ends the work")
}

fn is_divisible(function: LLVMValueRef) -> bool {
    // SAFETY: a function; the name has this length.
    unsafe {
        let kind = LLVMGetEnumAttributeKindForName(c"noinline".as_ptr(), 8);
        let noinline = LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind);
        LLVMIsDeclaration(function) == 0
            && LLVMGetLinkage(function) == LLVMLinkage::LLVMInternalLinkage
            && !noinline.is_null()
    }
}

/// A module as LLVM stores it.
pub(super) struct Bitcode(LLVMMemoryBufferRef);

// SAFETY: nothing changes the buffer.
unsafe impl Send for Bitcode {}
unsafe impl Sync for Bitcode {}

impl Bitcode {
    pub fn of(module: &Module) -> Self {
        // SAFETY: the module is alive.
        Self(unsafe { LLVMWriteBitcodeToMemoryBuffer(module.raw.0) })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer has this size.
        unsafe {
            let start = LLVMGetBufferStart(self.0).cast::<u8>();
            std::slice::from_raw_parts(start, LLVMGetBufferSize(self.0))
        }
    }

    fn parse(&self, context: &Context) -> Result<OwnedModule, Error> {
        let mut module = ptr::null_mut();
        // SAFETY: context and buffer are alive; everything is parsed at once.
        let failed = unsafe { LLVMParseBitcodeInContext2(context.raw, self.0, &mut module) } != 0;
        context.check("cannot read bitcode", failed)?;
        Ok(OwnedModule(module))
    }
}

impl Drop for Bitcode {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { LLVMDisposeMemoryBuffer(self.0) }
    }
}

//! Ways of compiling that seeds draw, random schedules among them.

use super::{
    random::Random,
    schedules::{generics, schedule},
};
use melior::ir::Module;
use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};
use tc_backends::{
    Artifact, Backend, Codegen, Machine, Stage, Target,
    backend::{Cost, Error, Form},
    cpu,
};
use tc_dialects::imap::schedule::Schedule;
use tc_passes::target::{MemoryBound, TileLimits};

/// The most operations of a program in a language that get a schedule.
const MOST: usize = 3;

/// The CPU, with random schedules that depend on the text of a module only.
static SCHEDULED: &dyn Backend = &Scheduled;

/// How the program of a seed is compiled, and whether fusion is left out: unfused, fused, or fused and with random
/// schedules, with one or with two threads.
pub fn route(seed: u64) -> (&'static dyn Backend, Codegen, bool) {
    let threads = 1 + seed as usize % 2;
    let codegen = Codegen { threads, ..Codegen::default() };
    let (backend, no_fuse) = match seed / 2 % 3 {
        0 => (cpu::BACKEND, true),
        1 => (cpu::BACKEND, false),
        _ => (SCHEDULED, false),
    };
    (backend, codegen, no_fuse)
}

struct Scheduled;

impl Target for Scheduled {
    fn name(&self) -> &'static str {
        "cpu-scheduled"
    }

    fn machine(&self, name: Option<&str>) -> Result<Machine, String> {
        cpu::BACKEND.machine(name)
    }

    fn costs(&self, machine: &Machine) -> MemoryBound {
        cpu::BACKEND.costs(machine)
    }

    fn tiles(&self, codegen: &Codegen) -> TileLimits {
        cpu::BACKEND.tiles(codegen)
    }

    fn legalize(&self, upstream: bool) -> String {
        cpu::BACKEND.legalize(upstream)
    }

    fn lower(&self, codegen: &Codegen, upstream: bool) -> String {
        cpu::BACKEND.lower(codegen, upstream)
    }
}

impl Backend for Scheduled {
    fn compile(&self, module: &Module, codegen: &Codegen) -> Result<Box<dyn Artifact>, Error> {
        let mut hasher = DefaultHasher::new();
        module.as_operation().to_string().hash(&mut hasher);
        let scheduled = schedule(module, codegen, MOST, &mut Random::new(hasher.finish()));
        scheduled.unwrap_or_else(|error| panic!("{error}\n{}", module.as_operation()));
        let compiled = cpu::BACKEND.compile(module, codegen);
        generics(module).into_iter().for_each(|it| Schedule::default().set(it.op()));
        compiled
    }

    fn forms(&self) -> &'static [Form] {
        cpu::BACKEND.forms()
    }

    fn on_device(&self, name: &str) -> Result<&'static dyn Backend, String> {
        cpu::BACKEND.on_device(name)
    }

    fn lower_to<'c>(
        &self,
        module: &Module<'c>,
        codegen: &Codegen,
        stage: Stage,
    ) -> Result<Module<'c>, Error> {
        cpu::BACKEND.lower_to(module, codegen, stage)
    }

    fn cost(&self, module: &Module, codegen: &Codegen) -> Result<Vec<Cost>, Error> {
        cpu::BACKEND.cost(module, codegen)
    }
}

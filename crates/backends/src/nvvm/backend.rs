//! The target and the backend for NVIDIA's GPUs.

use super::{
    Cuda, Emulator, Program, machine::machines, manifest, pipeline, plan, ptxas::assemble,
};
use crate::{
    backend::{
        Artifact, Backend, Compiled, Cost, Error, Form, Interface, Signature, Stage,
        read_signatures,
    },
    cpu::{self, header},
};
use melior::ir::Module;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tc_passes::target::{Codegen, Machine, MemoryBound, Target, TileLimits};

/// The backend for NVIDIA's GPUs. It writes code; [`Backend::on_device`] also runs it.
pub static BACKEND: &dyn Backend = &Nvvm { runs_on: None };

/// What runs kernels.
#[derive(Clone, Copy, Debug)]
enum Runner {
    Emulator,
    Cuda,
}

/// The devices, with the backends that run kernels on them.
static DEVICES: [(&str, &dyn Backend); 2] = [
    ("emulator", &Nvvm { runs_on: Some(Runner::Emulator) }),
    ("cuda", &Nvvm { runs_on: Some(Runner::Cuda) }),
];

struct Nvvm {
    runs_on: Option<Runner>,
}

/// The forms in which it writes code.
const FORMS: &[Form] = &[Form::Ptx, Form::Cubin, Form::Object];

impl Target for Nvvm {
    fn name(&self) -> &'static str {
        "nvvm"
    }

    fn machine(&self, name: Option<&str>) -> Result<Machine, String> {
        let machines = machines();
        let known: Vec<_> = machines.iter().map(|machine| machine.cpu.clone()).collect();
        let known = known.join(", ");
        let Some(name) = name else {
            return Err(format!("expected a GPU after 'nvvm:', one of {known}"));
        };
        let machine = machines.into_iter().find(|machine| machine.cpu == name);
        machine.ok_or_else(|| format!("'{name}' is not a supported GPU; known GPUs: {known}"))
    }

    /// A GPU computes more per byte that it loads than a CPU, and has no prefetchers that follow streams.
    fn costs(&self, _: &Machine) -> MemoryBound {
        MemoryBound {
            max_recompute: 32,
            max_streams: 32,
            max_row: Some(pipeline::tiles().tile_bytes),
            ..MemoryBound::default()
        }
    }

    fn tiles(&self, _: &Codegen) -> TileLimits {
        pipeline::tiles()
    }

    fn legalize(&self, upstream: bool) -> String {
        [pipeline::INLINE, &cpu::pipeline::destinations(upstream)].join(",")
    }

    fn lower(&self, codegen: &Codegen, upstream: bool) -> String {
        // Every index fits 64 bits.
        [pipeline::to_kernels(codegen, upstream), pipeline::lower(64, codegen)].join(",")
    }
}

impl Backend for Nvvm {
    fn compile(&self, module: &Module, codegen: &Codegen) -> Result<Box<dyn Artifact>, Error> {
        check(&codegen.machine)?;
        let program = Program::lower(module, codegen)?;
        let machine = codegen.machine.clone();
        Ok(Box::new(Generated { program, machine, runs_on: self.runs_on }))
    }

    fn forms(&self) -> &'static [Form] {
        FORMS
    }

    fn on_device(&self, name: &str) -> Result<&'static dyn Backend, String> {
        let found = DEVICES.iter().find(|(known, _)| *known == name);
        let known = || DEVICES.map(|(known, _)| known).join(", ");
        let unknown = || format!("'{name}' is not a device; known devices: {}", known());
        found.map(|(_, backend)| *backend).ok_or_else(unknown)
    }

    fn lower_to<'c>(
        &self,
        module: &Module<'c>,
        codegen: &Codegen,
        stage: Stage,
    ) -> Result<Module<'c>, Error> {
        check(&codegen.machine)?;
        let (mut copy, upstream) = cpu::prepare(module, pipeline::INLINE)?;
        let passes = match stage {
            Stage::Loops => {
                let (kernels, threads) =
                    (pipeline::to_kernels(codegen, upstream), pipeline::threads(codegen));
                format!("{kernels},gpu.module({threads},canonicalize,cse)")
            }
            Stage::Llvm => self.lower(codegen, upstream),
        };
        cpu::run(&mut copy, &passes)?;
        Ok(copy)
    }

    fn cost(&self, module: &Module, codegen: &Codegen) -> Result<Vec<Cost>, Error> {
        check(&codegen.machine)?;
        let (mut copy, upstream) = cpu::prepare(module, pipeline::INLINE)?;
        let signatures = read_signatures(&copy).ok_or(Error::Lowering)?;
        let mut costs = cpu::work_costs(&signatures, &copy);
        let threads = pipeline::threads(codegen);
        let kernels = pipeline::to_kernels(codegen, upstream);
        cpu::run(&mut copy, &format!("{kernels},gpu.module({threads})"))?;
        for (cost, memory) in costs.iter_mut().zip(plan::memory(&copy, &signatures)) {
            (cost.temporary_bytes, cost.scratch_bytes) = memory;
        }
        Ok(costs)
    }
}

/// Checks that a machine is of this target.
fn check(machine: &Machine) -> Result<(), Error> {
    match machine.is_gpu() {
        true => Ok(()),
        false => Err(Error::Target(format!("'{}' is not a GPU", machine.triple))),
    }
}

/// A program for a machine.
struct Generated {
    program: Program,
    machine: Machine,
    runs_on: Option<Runner>,
}

impl Artifact for Generated {
    fn signatures(&self) -> &[Signature] {
        self.program.signatures()
    }

    fn llvm_time(&self) -> Duration {
        self.program.llvm_time()
    }

    fn emit(&self, form: Form) -> Result<Vec<u8>, Error> {
        match form {
            Form::Ptx => Ok(self.program.ptx().as_bytes().to_vec()),
            Form::Cubin if self.program.kernels().is_empty() => Err(Error::NoKernels),
            Form::Cubin => assemble(self.program.ptx(), &self.machine),
            Form::Object => self.program.object(),
            Form::LlvmIr | Form::Assembly => {
                Err(Error::Form { target: "nvvm", form, forms: FORMS })
            }
        }
    }

    fn interface(&self, form: Form, stem: &str) -> Result<Interface, Error> {
        let program = &self.program;
        if form != Form::Object {
            return Ok(Interface {
                ending: "json",
                text: manifest::write(program, &self.machine)?,
            });
        }
        let kernels = manifest::kernels(program)?;
        let device = header::Device {
            kernels: kernels.into_iter().map(|(kernel, _)| kernel).collect(),
            constant_bytes: program.constants().len(),
            constants: program.constants_symbol(),
        };
        let code = header::Code::Device(&device);
        Ok(Interface { ending: "h", text: header::write(program.signatures(), stem, &code) })
    }

    fn load(&self) -> Result<Compiled, Error> {
        let (ptx, kernels) = (self.program.ptx(), self.program.kernels());
        match self.runs_on {
            Some(Runner::Emulator) => {
                self.program.load(Arc::new(Mutex::new(Emulator::new(ptx, kernels)?)))
            }
            Some(Runner::Cuda) => self.program.load(Arc::new(Mutex::new(Cuda::new(ptx, kernels)?))),
            None => Err(Error::NoDevice("emulator")),
        }
    }
}

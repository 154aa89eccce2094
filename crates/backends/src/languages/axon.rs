//! Axon programs. An entry is specialized to the shapes of a request and becomes HLO; a dynamic request lowers it once
//! for all sizes that are not given, and the function checks the conditions on them at entry.

use super::hlo::{self, fuse};
use crate::{
    interp::{self, Limits, Outcome},
    program::{self, Entry, Error, Id, Lowered, Parameter, Request, rejected, spelled},
    runtime::Tensor,
};
use melior::{
    Context,
    ir::{Location, operation::OperationLike as _},
};
use std::{cell::RefCell, rc::Rc};
use tc_dialects::{
    Language,
    axon::{
        self, Given, Inferred, Instance, Refusal, TensorType,
        syntax::ast,
        to_hlo::{axon_element, to_hlo},
    },
    hlo::Module,
    text::{Diagnostic, SourceFile, Span},
    tml::import::program_name,
};
use tc_passes::convert::{axon_to_imap, hlo_to_imap::MAX_BYTES};

/// What one interpretation may use.
const LIMITS: Limits = Limits { points: 1 << 30, elements: 1 << 26 };

/// A program without errors.
pub struct Program<'c> {
    id: Id,
    context: &'c Context,
    source: SourceFile,
    tree: ast::Program,
    options: axon::Options,
    warnings: Vec<Diagnostic>,
    /// The result of inference, for its first user: looking at an entry changes it.
    inferred: RefCell<Option<Inferred>>,
    /// The entry of the last request.
    last: RefCell<Option<(Request, Rc<Specialized<'c>>)>>,
}

/// An entry of a program at known shapes.
pub struct Specialized<'c> {
    inferred: RefCell<Inferred>,
    instance: Instance,
    hlo: hlo::Program<'c>,
}

impl Specialized<'_> {
    /// The entry as HLO.
    pub fn module(&self) -> &Module {
        self.hlo.module()
    }

    /// The names and types of the parameters.
    pub fn parameters(&self) -> &[(String, TensorType)] {
        &self.instance.parameters
    }
}

impl<'c> Program<'c> {
    /// Reads a text and infers its types and shapes.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read(
        context: &'c Context,
        name: &str,
        text: Vec<u8>,
        options: axon::Options,
    ) -> Result<Self, Error> {
        let (source, tree, diagnostics) = axon::syntax::read(name, text);
        if !diagnostics.is_empty() {
            return Err(rejected(&source, &diagnostics));
        }
        let mut inferred = axon::infer(&tree, &options);
        if !inferred.diagnostics.is_empty() {
            return Err(rejected(&source, &inferred.diagnostics));
        }
        let warnings = std::mem::take(&mut inferred.warnings);
        let (inferred, last) = (RefCell::new(Some(inferred)), RefCell::default());
        Ok(Self { id: Id::new(), context, source, tree, options, warnings, inferred, last })
    }

    /// An entry at the shapes of a request.
    ///
    /// # Errors
    /// The entry or a parameter does not exist, the given shapes contradict the program, the shape of a parameter is
    /// unknown, a parameter is too large, or an operation cannot be executed.
    pub fn specialize(&self, request: &Request) -> Result<Rc<Specialized<'c>>, Error> {
        if let Some((last, specialized)) = &*self.last.borrow()
            && (&last.entry, &last.shapes) == (&request.entry, &request.shapes)
        {
            return Ok(Rc::clone(specialized));
        }
        let mut inferred = self.inferred();
        let entry = request.entry.as_deref();
        let instance = inferred.specialize(&self.tree, entry, &given(request)?);
        let instance = instance.map_err(|refusal| self.refused(refusal))?;
        for (name, ty) in &instance.parameters {
            let array = hlo_shape(ty);
            if array.num_bytes().is_none_or(|bytes| MAX_BYTES < bytes) {
                return Err(Error::Usage(format!(
                    "'{name}' would be {ty}, expected at most {MAX_BYTES} bytes; try '--shape {name}=..' with \
                     smaller sizes"
                )));
            }
        }
        let name = self.name_of(instance.name.as_deref());
        let module = to_hlo(&mut inferred, &self.tree, &instance, &name);
        let module = module.map_err(|error| rejected(&self.source, &[error]))?;
        let hlo = hlo::Program::new(self.context, self.source.clone(), module);
        let specialized = Rc::new(Specialized { inferred: RefCell::new(inferred), instance, hlo });
        self.last.replace(Some((request.clone(), Rc::clone(&specialized))));
        Ok(specialized)
    }

    /// An entry whose sizes are parameters, except those that are given; `None` if all sizes are known.
    fn parametric(&self, request: &Request) -> Result<Option<Lowered<'c>>, Error> {
        let mut inferred = self.inferred();
        let ir = tc_ir::Context::new();
        let entry = request.entry.as_deref();
        let parametric = inferred.parametric(&self.tree, entry, &given(request)?, &ir);
        let parametric = parametric.map_err(|refusal| self.refused(refusal))?;
        if parametric.sizes.is_empty() {
            return Ok(None);
        }
        let name = self.name_of(parametric.instance.name.as_deref());
        let function = spelled(&name);
        let location = |span: Span| {
            let (line, column) = self.source.line_col(span.start);
            Location::new(self.context, self.source.name(), line, column)
        };
        let (entry, note) = ((&ir, &parametric), parametric.signature(&ir));
        let module = axon_to_imap::convert(
            self.context,
            &mut inferred,
            &self.tree,
            entry,
            &function,
            &location,
        );
        let mut module = module.map_err(|error| rejected(&self.source, &[error]))?;
        if !module.as_operation().verify() {
            return Err(Error::diagnosed());
        }
        fuse(&mut module, request)?;
        let note = Some(format!("'{name}' is compiled for all sizes of {note}"));
        Ok(Some(Lowered { note, ..Lowered::plain(module, function) }))
    }

    fn name_of(&self, entry: Option<&str>) -> String {
        entry.map_or_else(|| program_name(self.source.name()), str::to_string)
    }

    fn inferred(&self) -> Inferred {
        self.inferred.take().unwrap_or_else(|| axon::infer(&self.tree, &self.options))
    }

    fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Request(reason) => Error::Usage(reason),
            Refusal::Program(diagnostics) => rejected(&self.source, &diagnostics),
        }
    }
}

impl<'c> program::Program<'c> for Program<'c> {
    fn id(&self) -> Id {
        self.id
    }

    fn warnings(&self) -> String {
        self.source.render_all(&self.warnings)
    }

    fn language(&self) -> Language {
        Language::Axon
    }

    fn entries(&self) -> Vec<String> {
        let signatures = self.inferred().signatures();
        signatures.into_iter().filter_map(|(name, _)| Some(name?.to_string())).collect()
    }

    fn inputs(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        let names = self.inferred().parameters(&self.tree, entry);
        names.map_err(|refusal| self.refused(refusal))
    }

    fn entry(&self, request: &Request) -> Result<Entry, Error> {
        let specialized = self.specialize(request)?;
        let mut entry = program::Program::entry(&specialized.hlo, request)?;
        let parameters = specialized.instance.parameters.iter();
        let parameter = |(name, ty): &(String, TensorType)| -> Parameter {
            hlo::parameter(name.clone(), &hlo_shape(ty))
        };
        entry.inputs = parameters.map(parameter).collect();
        Ok(entry)
    }

    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error> {
        if request.dynamic
            && let Some(lowered) = self.parametric(request)?
        {
            return Ok(lowered);
        }
        let specialized = self.specialize(request)?;
        let parameters = specialized.instance.parameters.iter();
        let parameters: Vec<_> = parameters.map(|(name, ty)| format!("{name} : {ty}")).collect();
        let parameters = match parameters.is_empty() {
            true => "it takes nothing".to_string(),
            false => parameters.join(", "),
        };
        let name = &specialized.hlo.module().name;
        let note = format!("'{name}' is compiled for these shapes only: {parameters}");
        let lowered = program::Program::lower(&specialized.hlo, request)?;
        Ok(Lowered { note: Some(note), ..lowered })
    }

    /// Evaluates the program element by element.
    fn interpret(&self, request: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        let specialized = self.specialize(request)?;
        let inferred = &mut *specialized.inferred.borrow_mut();
        interp::run_axon(inferred, &self.tree, &specialized.instance, inputs, LIMITS)
            .map_err(|error| rejected(&self.source, &[error]))
    }
}

/// The shapes of a request for the inference.
fn given(request: &Request) -> Result<Vec<Given>, Error> {
    let given = |shape: &program::Shape| {
        let parameter = shape.parameter.clone();
        let unsupported = |it| Error::Usage(format!("'{parameter}' cannot be {it}"));
        let element = shape.element.map(|it| axon_element(it).ok_or_else(|| unsupported(it)));
        let (element, source) = (element.transpose()?, shape.source.clone());
        Ok(Given { parameter: shape.parameter.clone(), element, dims: shape.dims.clone(), source })
    };
    request.shapes.iter().map(given).collect()
}

fn hlo_shape(ty: &TensorType) -> tc_dialects::hlo::ArrayShape {
    tc_dialects::hlo::ArrayShape::new(axon::to_hlo::hlo_element(ty.element), ty.dims.as_slice())
}

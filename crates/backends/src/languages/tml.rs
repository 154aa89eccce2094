//! TML programs. Compiled code may pad variables; the values of a call have no padding.

use crate::{
    interp::{Limits, Outcome},
    program::{self, Entry, Error, Id, Layout, Lowered, Padding, Parameter, Request, Sizes},
    runtime::{ElementType, Tensor},
    tml::{
        compare::outcome,
        interp::{self, Machine},
        value::{Bounded, Division},
    },
};
use melior::{
    Context,
    ir::{Module, ValueLike},
};
use std::collections::BTreeMap;
use tc_dialects::{
    Language, mlir,
    text::{Diagnostic, SourceFile},
    tml::{
        self, extents, import,
        syntax::{Checked, ast::Qualifier, read},
    },
};
use tc_passes::run_pipeline;

/// A program that is well-formed.
pub struct Program<'c> {
    id: Id,
    context: &'c Context,
    source: SourceFile,
    checked: Checked,
    warnings: Vec<Diagnostic>,
}

impl<'c> Program<'c> {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read(context: &'c Context, name: &str, text: Vec<u8>) -> Result<Self, Error> {
        let (source, checked, diagnostics) = read(name, text);
        match diagnostics.iter().any(Diagnostic::is_error) {
            true => Err(program::rejected(&source, &diagnostics)),
            false => Ok(Self { warnings: diagnostics, ..Self::new(context, source, checked) }),
        }
    }

    /// A program of a source that has been checked.
    pub fn new(context: &'c Context, source: SourceFile, checked: Checked) -> Self {
        Self { id: Id::new(), context, source, checked, warnings: Vec::new() }
    }

    /// The variables and statements.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    fn import(&self) -> Module<'c> {
        import::import_program(self.context, &self.source, &self.checked)
    }

    /// The multiple that dimensions are rounded up to.
    pub fn vector_length(&self, request: &Request) -> Option<i64> {
        request.padding.map(|padding| match padding {
            Padding::AtMost(length) => self.checked.vector_length(length),
            Padding::Length(length) => length,
        })
    }

    /// The passes from `tml` to `imap` operations.
    pub fn pipeline(&self, request: &Request) -> String {
        let mut passes =
            vec!["tml.program(tml-eliminate-dead-statements)".to_string(), "cse".into()];
        if !request.no_fuse {
            passes.push("tml.program(tml-forward-statements)".into());
        }
        if !request.keep_order {
            passes.push("tml.program(tml-reassociate)".into());
        }
        if let Some(vector_length) = self.vector_length(request) {
            passes.push(format!("tml-pad{{vector-length={vector_length}}}"));
        }
        passes.push("convert-tml-to-imap,canonicalize,cse".into());
        passes.extend(request.fusion());
        passes.join(",")
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
        Language::Tml
    }

    fn entries(&self) -> Vec<String> {
        vec![import::program_name(self.source.name())]
    }

    fn inputs(&self, _: Option<&str>) -> Result<Vec<String>, Error> {
        Ok(self.entry(&Request::default())?.inputs.into_iter().map(|it| it.name).collect())
    }

    fn entry(&self, _: &Request) -> Result<Entry, Error> {
        entry_of(&self.import())
    }

    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error> {
        let mut module = self.import();
        let Entry { name, inputs, outputs, .. } = entry_of(&module)?;
        run_pipeline(&mut module, &self.pipeline(request))?;
        let padding = self.vector_length(request);
        let layouts = |parameters: Vec<Parameter>| match padding {
            Some(_) => parameters.iter().map(|it| Layout::Padded(it.dims())).collect(),
            None => Vec::new(),
        };
        let (inputs, outputs) = (layouts(inputs), layouts(outputs));
        Ok(Lowered { inputs, outputs, padding, ..Lowered::plain(module, name) })
    }

    /// Evaluates the rules of the language without padding, on floats with error bounds.
    fn interpret(&self, request: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        let Entry { inputs: parameters, outputs, .. } = self.entry(request)?;
        let names = parameters.iter().map(|it| it.name.as_str());
        let values: BTreeMap<_, _> = names.zip(inputs).collect();
        let ambient = |variable: usize, place: usize| {
            let variable = &self.checked.variables[variable];
            let Some(tensor) = values.get(variable.name.as_str()) else {
                // A variable that is assigned before it is read is not passed: no result depends on it.
                let is_passed = variable.qualifier == Some(Qualifier::InOut);
                return is_passed.then(|| Bounded::exact(0.0));
            };
            // A NaN is a number of which nothing is known.
            tensor.get(place).map(|number| Bounded::exact(number.to_f64()))
        };
        let limits = Limits { points: 1 << 32, ..Limits::default() };
        let refused = |error: interp::Error| Error::Rejected(format!("the interpreter: {error}"));
        let machine = Machine::new(&self.checked, 1, Division::Controlled, limits, ambient);
        let mut machine = machine.map_err(refused)?;
        machine.run().map_err(refused)?;
        let outcomes = outputs.iter().map(|output| {
            let number = self.checked.variable(&output.name);
            outcome(&machine, number.expect("each result is a variable"))
        });
        Ok(outcomes.collect())
    }
}

/// The inputs and results of the only program of a module.
fn entry_of(module: &Module) -> Result<Entry, Error> {
    let programs = mlir::ops(mlir::block_ref(module.body())).into_iter();
    let program = programs.filter_map(tml::Program::cast).next();
    let program = program.ok_or_else(|| Error::Usage("expected a 'tml.program'".to_string()))?;
    let parameter = |(parameter, value): (&tml::Parameter, mlir::Val)| {
        let element = mlir::element_type(value.r#type());
        let element = ElementType::of(element, false).ok_or_else(|| {
            Error::Usage(format!("tensors of '{element}' have no form in memory"))
        })?;
        let shape: Vec<_> = extents(value).into_iter().map(|extent| extent as usize).collect();
        Ok(Parameter::stored(parameter.name, element, &shape))
    };
    let inputs = program.parameters();
    let inputs = inputs.iter().zip(program.arguments()).map(parameter);
    let outputs = program.outputs();
    let outputs = outputs.iter().zip(program.results()).map(parameter);
    Ok(Entry {
        name: program.name().to_string(),
        inputs: inputs.collect::<Result<_, Error>>()?,
        outputs: outputs.collect::<Result<_, Error>>()?,
        sizes: Sizes::new(),
    })
}

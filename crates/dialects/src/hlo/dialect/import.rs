//! Imports HLO into the dialect.

use super::{
    COMPUTATION, RETURN, attribute_name, operation_name, parameter_attribute_name,
    types::{Types, has_explicit_layout},
    values::{attribute, constant},
};
use crate::{
    ffi,
    hlo::{
        self, Attribute, Computation, ComputationId, Instruction, InstructionId, Module, Payload,
        StackFrames,
    },
    mlir::{self, Blk, Builder, Val},
    report::{Report, location},
    text::{Severity, SourceFile, Span},
};
use melior::{
    Context,
    ir::{
        Attribute as MlirAttribute, Block, Location, Module as MlirModule, Region, RegionLike,
        Type, r#type::FunctionType,
    },
};

/// Imports the bytes of a file of HLO text, verified. Diagnostics are emitted as those of the
/// context; `None` after an error. The dialects must be registered with the context, see
/// [`register_dialects`](crate::register_dialects).
pub fn import<'c>(context: &'c Context, file_name: &str, bytes: &[u8]) -> Option<MlirModule<'c>> {
    let (source, module, diagnostics) = hlo::read(file_name, bytes.to_vec());
    for diagnostic in &diagnostics {
        Report::in_source(context, &source, diagnostic).emit();
    }
    import_module(context, &source, &module?).map_err(Report::emit).ok()
}

/// Imports a verified module that was read from this source, to which locations refer.
///
/// # Errors
/// A constant that MLIR cannot hold.
pub fn import_module<'c>(
    context: &'c Context,
    source: &SourceFile,
    module: &Module,
) -> Result<MlirModule<'c>, Report<'c>> {
    let at = |span| location(context, source, span);
    let place = Location::new(context, source.name(), 0, 0);
    import_located(context, place, &at, module)
}

/// Imports a verified module that comes from `place`; `at` says where its spans are.
///
/// # Errors
/// A constant that MLIR cannot hold.
pub fn import_located<'c>(
    context: &'c Context,
    place: Location<'c>,
    at: &dyn Fn(Span) -> Location<'c>,
    module: &Module,
) -> Result<MlirModule<'c>, Report<'c>> {
    context.get_or_load_dialect("hlo");
    let result = MlirModule::new(place);
    let mut importer = Importer {
        context,
        at,
        module,
        block: mlir::block_ref(result.body()),
        types: Types::new(context),
    };
    for id in (0..module.computations.len() as u32).map(ComputationId) {
        importer.computation(id)?;
    }
    let op = mlir::op_ref(result.as_operation());
    for (name, value) in importer.module_attributes() {
        mlir::set_attribute(op, name, value);
    }
    Ok(result)
}

struct Importer<'a, 'c> {
    context: &'c Context,
    at: &'a dyn Fn(Span) -> Location<'c>,
    module: &'a Module,
    block: Blk<'c>,
    types: Types<'c>,
}

impl<'c> Importer<'_, 'c> {
    fn location(&self, span: Span) -> Location<'c> {
        (self.at)(span)
    }

    fn module_attributes(&mut self) -> Vec<(&'static str, MlirAttribute<'c>)> {
        let (context, module) = (self.context, self.module);
        let header = &module.header;
        let mut attributes = vec![
            ("sym_name", mlir::string(context, &module.name)),
            ("hlo.entry", mlir::symbol(context, &module.entry().name)),
        ];
        let all = module.computations.iter().flat_map(|each| &each.instructions);
        if all.map(|each| &each.shape).any(has_explicit_layout) {
            attributes.push(("hlo.explicit_layouts", MlirAttribute::unit(context)));
        }
        if header.is_scheduled {
            attributes.push(("hlo.is_scheduled", MlirAttribute::unit(context)));
        }
        if let Some(shape) = &header.entry_computation_layout {
            let inputs: Vec<_> = shape.parameters.iter().map(|each| self.types.ty(each)).collect();
            let ty = FunctionType::new(context, &inputs, &[self.types.ty(&shape.result)]);
            attributes.push(("hlo.entry_computation_layout", mlir::type_attr(ty.into())));
        }
        for (name, count) in [
            ("hlo.replica_count", header.replica_count),
            ("hlo.num_partitions", header.num_partitions),
        ] {
            attributes.extend(count.map(|count| (name, mlir::i64_attr(context, count))));
        }
        if !header.others.is_empty() {
            let others = header.others.iter().map(|(name, text)| format!("{name}={text}"));
            attributes.push(("hlo.header", mlir::strings(context, &others.collect::<Vec<_>>())));
        }
        if module.frames != StackFrames::default() {
            attributes.push(("hlo.stack_frames", self.frames(&module.frames)));
        }
        attributes
    }

    fn frames(&self, frames: &StackFrames) -> MlirAttribute<'c> {
        let context = self.context;
        let locations = frames.locations.iter().flat_map(|each| {
            let (file, function) = (each.file_name_id, each.function_name_id);
            [file, function, each.line, each.end_line, each.column, each.end_column]
        });
        let parents =
            frames.frames.iter().flat_map(|each| [each.file_location_id, each.parent_frame_id]);
        let numbers = |numbers: &mut dyn Iterator<Item = u32>| {
            mlir::i64_array(context, &numbers.map(i64::from).collect::<Vec<_>>())
        };
        mlir::dictionary(
            context,
            &[
                ("file_names", mlir::strings(context, &frames.file_names)),
                ("function_names", mlir::strings(context, &frames.function_names)),
                ("locations", numbers(&mut locations.into_iter())),
                ("frames", numbers(&mut parents.into_iter())),
            ],
        )
    }

    fn computation(&mut self, id: ComputationId) -> Result<(), Report<'c>> {
        let context = self.context;
        let computation = &self.module[id];
        let arguments: Vec<_> = computation
            .parameters
            .iter()
            .map(|&id| (self.types.ty(&computation[id].shape), self.location(computation[id].span)))
            .collect();
        let region = Region::new();
        let block = mlir::block_ref(region.append_block(Block::new(&arguments)));
        let mut values: Vec<Option<Val<'c>>> = vec![None; computation.instructions.len()];
        for (&id, argument) in computation.parameters.iter().zip(mlir::arguments(block)) {
            values[id.index()] = Some(argument);
        }
        for (id, instruction) in computation.instructions() {
            if values[id.index()].is_none() {
                let value = self.instruction(computation, instruction, block, &values)?;
                values[id.index()] = Some(value);
            }
        }
        let root = value(&values, computation.root);
        let location = self.location(computation.root().span);
        Builder::at_end(context, block, location).op(RETURN, &[root], &[]);

        let inputs: Vec<_> = arguments.iter().map(|(ty, _)| *ty).collect();
        let result = self.types.ty(&computation.root().shape);
        let function_type: Type = FunctionType::new(context, &inputs, &[result]).into();
        let parameters = (0..).zip(&computation.parameters);
        let parameters: Vec<_> = parameters
            .map(|(number, &id)| self.parameter_attributes(computation, number, id))
            .collect();
        let mut attributes = vec![
            ("sym_name", mlir::string(context, &computation.name)),
            ("function_type", mlir::type_attr(function_type)),
        ];
        if !parameters.is_empty() {
            attributes.push(("arg_attrs", mlir::array(context, &parameters)));
        }
        if id != self.module.entry {
            attributes.push(("sym_visibility", mlir::string(context, "private")));
        }
        let location = self.location(computation.span);
        Builder::at_end(context, self.block, location).op_with(
            COMPUTATION,
            &[],
            &[],
            &attributes,
            vec![region],
        );
        Ok(())
    }

    fn parameter_attributes(
        &self,
        computation: &Computation,
        number: u32,
        id: InstructionId,
    ) -> MlirAttribute<'c> {
        let context = self.context;
        let parameter = &computation[id];
        let mut entries = vec![("hlo.name", mlir::string(context, &parameter.name))];
        if id.0 != number {
            entries.push(("hlo.position", mlir::i64_attr(context, i64::from(id.0))));
        }
        entries.extend(parameter.attributes.iter().map(|(name, value)| {
            let value = attribute(context, self.module, computation, value);
            (parameter_attribute_name(*name), value)
        }));
        mlir::dictionary(context, &entries)
    }

    fn instruction(
        &mut self,
        computation: &Computation,
        instruction: &Instruction,
        block: Blk<'c>,
        values: &[Option<Val<'c>>],
    ) -> Result<Val<'c>, Report<'c>> {
        let context = self.context;
        let location = self.location(instruction.span);
        let operands: Vec<_> = instruction.operands.iter().map(|&id| value(values, id)).collect();
        let named = instruction.attributes.iter().filter(|(name, _)| *name != Attribute::Metadata);
        let mut attributes: Vec<_> = named
            .map(|(name, value)| {
                (attribute_name(*name), attribute(context, self.module, computation, value))
            })
            .collect();
        if let Payload::Constant(literal) = &instruction.payload {
            let value =
                constant(context, literal, &instruction.shape, &mut |shape| self.types.ty(shape));
            let value = value.map_err(|message| Report::at(location, Severity::Error, message))?;
            attributes.push(("value", value));
        }
        let op = Builder::at_end(context, block, location).op_with(
            operation_name(instruction.opcode),
            &operands,
            &[self.types.ty(&instruction.shape)],
            &attributes,
            Vec::new(),
        );
        ffi::set_hlo_origin(op, &instruction.name, instruction.text(Attribute::Metadata));
        Ok(mlir::result(op, 0))
    }
}

/// The value of an instruction before the current one.
fn value<'c>(values: &[Option<Val<'c>>], id: InstructionId) -> Val<'c> {
    values[id.index()].expect("operands stand before their users in a verified module")
}

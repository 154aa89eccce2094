//===- Driver.cpp - passes and the mlir-opt driver over Rust --------------===//

#include "Axon.h"
#include "Bridge.h"
#include "Hlo.h"
#include "Imap.h"
#include "Tc.h"
#include "Tml.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/TargetParser/Triple.h"

#include <csignal>
#include <mutex>

using namespace mlir;

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

/// Makes names in locations part of printed text: `%A` for an argument that the source calls `A`.
static void printSourceNames() {
  registerAsmPrinterCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto option = options.find("mlir-use-nameloc-as-prefix"); option != options.end())
    static_cast<llvm::cl::opt<bool> *>(option->second)->setInitialValue(true);
}

static void registerEverything(DialectRegistry &registry) {
  static std::once_flag once;
  std::call_once(once, printSourceNames);
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  registry.insert<tc::hlo::HloDialect, tc::imap::ImapDialect, tc::lang::TCDialect,
                  tc::tml::TmlDialect, tc::axon::AxonDialect>();
  tc::imap::registerBufferization(registry);
}

void tcRegisterDialects(MlirDialectRegistry registry) {
  registerEverything(*unwrap(registry));
}

void tcInsertDialect(MlirDialectRegistry handle, MlirStringRef name) {
  DialectRegistry &registry = *unwrap(handle);
  StringRef dialect = unwrap(name);
  if (dialect == "affine")
    registry.insert<affine::AffineDialect>();
  else if (dialect == "arith")
    registry.insert<arith::ArithDialect>();
  else if (dialect == "axon")
    registry.insert<tc::axon::AxonDialect>();
  else if (dialect == "bufferization")
    registry.insert<bufferization::BufferizationDialect>();
  else if (dialect == "cf")
    registry.insert<cf::ControlFlowDialect>();
  else if (dialect == "complex")
    registry.insert<complex::ComplexDialect>();
  else if (dialect == "func")
    registry.insert<func::FuncDialect>();
  else if (dialect == "gpu")
    registry.insert<gpu::GPUDialect>();
  else if (dialect == "hlo")
    registry.insert<tc::hlo::HloDialect>();
  else if (dialect == "imap")
    registry.insert<tc::imap::ImapDialect>();
  else if (dialect == "linalg")
    registry.insert<linalg::LinalgDialect>();
  else if (dialect == "llvm")
    registry.insert<LLVM::LLVMDialect>();
  else if (dialect == "math")
    registry.insert<math::MathDialect>();
  else if (dialect == "memref")
    registry.insert<memref::MemRefDialect>();
  else if (dialect == "nvvm")
    registry.insert<NVVM::NVVMDialect>();
  else if (dialect == "omp")
    registry.insert<omp::OpenMPDialect>();
  else if (dialect == "scf")
    registry.insert<scf::SCFDialect>();
  else if (dialect == "tc")
    registry.insert<tc::lang::TCDialect>();
  else if (dialect == "tensor")
    registry.insert<tensor::TensorDialect>();
  else if (dialect == "tml")
    registry.insert<tc::tml::TmlDialect>();
  else if (dialect == "vector")
    registry.insert<vector::VectorDialect>();
  else
    llvm::report_fatal_error("a pass depends on a dialect that the bridge does not know");
}

namespace {

/// An MLIR pass whose work is a Rust function.
class RustPass : public Pass {
public:
  RustPass(TypeID id, const TcPass *description)
      : Pass(id, anchor(*description)), id(id), description(description) {
    for (size_t i = 0; i < description->numOptions; ++i) {
      const TcPassOption &option = description->options[i];
      options.push_back(std::make_unique<Option<std::string>>(
          *this, unwrap(option.name), llvm::cl::desc(unwrap(option.description)),
          llvm::cl::init(unwrap(option.defaultValue).str())));
    }
  }

  StringRef getName() const override { return unwrap(description->argument); }
  StringRef getArgument() const override { return unwrap(description->argument); }
  StringRef getDescription() const override { return unwrap(description->description); }
  bool canScheduleOn(RegisteredOperationName name) const override {
    return !getOpName() || *getOpName() == name.getStringRef();
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    description->dependentDialects(description, wrap(&registry));
  }

protected:
  void runOnOperation() override {
    SmallVector<MlirStringRef> values;
    for (auto &option : options)
      values.push_back(wrap(StringRef(option->getValue())));
    if (!description->run(description, wrap(getOperation()), values.data()))
      signalPassFailure();
  }
  std::unique_ptr<Pass> clonePass() const override {
    return std::make_unique<RustPass>(id, description);
  }

private:
  static std::optional<StringRef> anchor(const TcPass &description) {
    StringRef name = unwrap(description.anchor);
    return name.empty() ? std::nullopt : std::optional<StringRef>(name);
  }

  TypeID id;
  const TcPass *description;
  std::vector<std::unique_ptr<Option<std::string>>> options;
};

} // namespace

void tcRegisterPass(const TcPass *pass) {
  // Leaked: a pass stays registered as long as the program runs.
  auto *owner = new SelfOwningTypeID();
  TypeID id = *owner;
  registerPass([id, pass]() -> std::unique_ptr<Pass> {
    return std::make_unique<RustPass>(id, pass);
  });
}

void tcRegisterPipeline(MlirStringRef argument, MlirStringRef description,
                        MlirStringRef pipeline) {
  std::string text = unwrap(pipeline).str();
  registerPassPipeline(
      unwrap(argument), unwrap(description),
      [text](OpPassManager &manager, StringRef options,
             function_ref<LogicalResult(const Twine &)> errorHandler) -> LogicalResult {
        if (options.empty())
          return parsePassPipeline(text, manager);
        if (StringRef(text).find_first_of(",{") != StringRef::npos)
          return errorHandler("this pipeline takes no options");
        // The name of one pass.
        return parsePassPipeline((text + "{" + options + "}").str(), manager);
      },
      [](function_ref<void(const detail::PassOptions &)>) {});
}

namespace {

/// The options of a pipeline that Rust builds.
struct PipelineOptions : mlir::detail::PassOptions {
  explicit PipelineOptions(const TcPipeline &pipeline) {
    for (size_t i = 0; i < pipeline.numOptions; ++i) {
      const TcPassOption &option = pipeline.options[i];
      options.push_back(std::make_unique<Option<std::string>>(
          *this, unwrap(option.name), llvm::cl::desc(unwrap(option.description)),
          llvm::cl::init(unwrap(option.defaultValue).str())));
    }
  }

  std::vector<std::unique_ptr<Option<std::string>>> options;
};

/// Whether the whole text after '=' is one value.
bool takesText(const TcPipeline &pipeline) {
  return pipeline.numOptions == 1 && pipeline.options[0].name.length == 0;
}

/// What Rust makes of the options of a pipeline.
struct BuiltPipeline {
  std::string passes, error;
};

} // namespace

void tcRegisterPipelineBuilder(const TcPipeline *pipeline) {
  registerPassPipeline(
      unwrap(pipeline->argument), unwrap(pipeline->description),
      [pipeline](OpPassManager &manager, StringRef text,
                 function_ref<LogicalResult(const Twine &)> errorHandler) -> LogicalResult {
        std::optional<PipelineOptions> options;
        SmallVector<MlirStringRef> values;
        if (takesText(*pipeline)) {
          values.push_back(wrap(text));
        } else {
          options.emplace(*pipeline);
          if (failed(options->parseFromString(text)))
            return failure();
          for (auto &option : options->options)
            values.push_back(wrap(StringRef(option->getValue())));
        }
        BuiltPipeline built;
        pipeline->build(
            pipeline, values.data(), &built,
            [](void *state, MlirStringRef passes) {
              static_cast<BuiltPipeline *>(state)->passes = unwrap(passes).str();
            },
            [](void *state, MlirStringRef error) {
              static_cast<BuiltPipeline *>(state)->error = unwrap(error).str();
            });
        return built.error.empty() ? parsePassPipeline(built.passes, manager)
                                   : errorHandler(built.error);
      },
      [pipeline](function_ref<void(const mlir::detail::PassOptions &)> handle) {
        if (!takesText(*pipeline))
          handle(PipelineOptions(*pipeline));
      });
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

void tcEmitDiagnostic(MlirLocation location, int severity, MlirStringRef text, size_t numNotes,
                      const MlirLocation *noteLocations, const MlirStringRef *noteTexts) {
  Location at = unwrap(location);
  InFlightDiagnostic diagnostic = severity == 0   ? emitError(at)
                                  : severity == 1 ? emitWarning(at)
                                                  : emitRemark(at);
  diagnostic << unwrap(text);
  for (size_t i = 0; i < numNotes; ++i)
    diagnostic.attachNote(unwrap(noteLocations[i])) << unwrap(noteTexts[i]);
}

bool tcRecordsRemarks(MlirContext context) { return unwrap(context)->getRemarkEngine(); }

void tcEmitRemark(MlirLocation location, int kind, MlirStringRef pass, MlirStringRef name,
                  MlirStringRef function, size_t numArguments, const MlirStringRef *keys,
                  const MlirStringRef *values) {
  auto options = remark::RemarkOpts::name(unwrap(name))
                     .category(unwrap(pass))
                     .function(unwrap(function));
  Location at = unwrap(location);
  auto remark = kind == 0   ? remark::passed(at, options)
                : kind == 1 ? remark::missed(at, options)
                            : remark::analysis(at, options);
  for (size_t i = 0; i < numArguments; ++i)
    remark << remark::detail::Remark::Arg(unwrap(keys[i]), unwrap(values[i]));
}

//===----------------------------------------------------------------------===//
// MLIR text
//===----------------------------------------------------------------------===//

MlirModule tcParse(MlirContext context, MlirStringRef fileName, MlirStringRef contents) {
  // The parser wants a text that ends in a zero.
  std::string text = unwrap(contents).str();
  return wrap(parseSourceString<ModuleOp>(text, ParserConfig(unwrap(context)), unwrap(fileName))
                  .release());
}

//===----------------------------------------------------------------------===//
// LLVM IR
//===----------------------------------------------------------------------===//

void *tcTranslateToLLVMIR(MlirOperation module, void *llvmContext) {
  return translateModuleToLLVMIR(unwrap(module),
                                 *static_cast<llvm::LLVMContext *>(llvmContext))
      .release();
}

bool tcIsProcessor(MlirStringRef triple, MlirStringRef name) {
  llvm::Triple parsed(unwrap(triple));
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, message);
  if (!target)
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> any(target->createMCSubtargetInfo(parsed, "", ""));
  if (!any || !any->isCPUStringValid(unwrap(name)))
    return false;
  // LLVM ends the program when it meets a processor of 32 bits in code of 64.
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(parsed, unwrap(name), ""));
  return parsed.getArch() != llvm::Triple::x86_64 || info->checkFeatures("+64bit");
}

bool tcHasFeature(MlirStringRef triple, MlirStringRef processor, MlirStringRef features,
                  MlirStringRef feature) {
  llvm::Triple parsed(unwrap(triple));
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, message);
  if (!target)
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(parsed, unwrap(processor), unwrap(features)));
  return info && info->checkFeatures(("+" + unwrap(feature)).str());
}

void tcProcessors(MlirStringRef triple, MlirStringCallback receive, void *names) {
  llvm::Triple parsed(unwrap(triple));
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, message);
  if (!target)
    return;
  std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(parsed, "", ""));
  if (!info)
    return;
  for (const llvm::SubtargetSubTypeKV &processor : info->getAllProcessorDescriptions())
    receive(wrap(StringRef(processor.Key)), names);
}

//===----------------------------------------------------------------------===//
// tc-opt
//===----------------------------------------------------------------------===//

static llvm::cl::OptionCategory sourceOptions("Source language options");

/// Prints a diagnostic without the line that it is about.
static void printWithoutSource(Diagnostic &diagnostic) {
  auto print = [](Diagnostic &entry, StringRef severity) {
    if (auto at = entry.getLocation()->findInstanceOf<FileLineColLoc>())
      llvm::errs() << at.getFilename().getValue() << ':' << at.getLine() << ':' << at.getColumn()
                   << ": ";
    llvm::errs() << severity << ": " << entry << '\n';
  };
  bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  bool isRemark = diagnostic.getSeverity() == DiagnosticSeverity::Remark;
  print(diagnostic, isError ? "error" : isRemark ? "remark" : "warning");
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, "note");
}

/// Lets diagnostics show lines of those files only that Rust permits: MLIR's printer would open
/// any file that a location names. It is the handler of a context before this one is, so that
/// this one has to be registered again whenever a dialect is loaded.
class LimitSources : public DialectExtensionBase {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LimitSources)

  explicit LimitSources(std::string source)
      : DialectExtensionBase(/*dialectNames=*/{}), source(std::move(source)) {}

  void apply(MLIRContext *context, MutableArrayRef<Dialect *>) const final {
    context->getDiagEngine().registerHandler([source = source](Diagnostic &diagnostic) {
      bool isShown = true;
      auto check = [&](Diagnostic &entry) {
        entry.getLocation()->walk([&](Location inner) {
          if (auto at = dyn_cast<FileLineColLoc>(inner))
            isShown &= tcRustIsShown(wrap(source), wrap(at.getFilename().getValue()));
          return WalkResult::advance();
        });
      };
      check(diagnostic);
      for (Diagnostic &note : diagnostic.getNotes())
        check(note);
      if (!isShown)
        printWithoutSource(diagnostic);
      return success(!isShown);
    });
  }

  std::unique_ptr<DialectExtensionBase> clone() const final {
    return std::make_unique<LimitSources>(source);
  }

private:
  std::string source;
};

/// Whether a text has a line that no screen would show.
static bool hasHugeLine(StringRef text) {
  constexpr size_t maxLine = 100'000;
  while (maxLine < text.size()) {
    size_t end = text.find('\n');
    if (maxLine < std::min(end, text.size()))
      return true;
    text = text.drop_front(end + 1);
  }
  return false;
}

/// A source that `tc-opt` reads, or a part of one.
struct SourceText {
  TcLanguage language;
  bool relaxed;
  StringRef fileName;
  StringRef contents;

  OwningOpRef<ModuleOp> import(MLIRContext &context) const {
    return OwningOpRef<ModuleOp>(unwrap(tcRustImport(
        wrap(&context), language, wrap(fileName), wrap(contents), relaxed)));
  }

  llvm::SourceMgr sources() const {
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(contents, fileName), SMLoc());
    return sources;
  }
};

/// Imports a source and writes it as bytecode, in which locations survive,
/// so that the driver reads it like any other input.
static LogicalResult importSource(const SourceText &source, DialectRegistry &registry,
                                  std::string &bytecode) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources = source.sources();
  OwningOpRef<ModuleOp> module;
  if (hasHugeLine(source.contents)) {
    ScopedDiagnosticHandler printer(&context, printWithoutSource);
    module = source.import(context);
  } else {
    SourceMgrDiagnosticHandler printer(sources, &context);
    module = source.import(context);
  }
  if (!module)
    return failure();
  llvm::raw_string_ostream stream(bytecode);
  return writeBytecodeToFile(*module, stream);
}

/// Prints the explanation of a diagnostic code. False if there is no such code.
static bool explainCode(StringRef code) {
  std::string text;
  bool known = tcRustExplain(wrap(code), &text, [](void *state, MlirStringRef part) {
    *static_cast<std::string *>(state) += unwrap(part).str();
  });
  (known ? llvm::outs() : llvm::errs() << "error: ") << text << '\n';
  return known;
}

/// Writes a module as HLO text.
static LogicalResult writeHlo(ModuleOp module, raw_ostream &output) {
  return success(tcRustExportHlo(wrap(module.getOperation()), &output,
                                 [](void *state, MlirStringRef text) {
                                   *static_cast<raw_ostream *>(state) << unwrap(text);
                                 }));
}

/// Imports a source, runs the passes, and compares what is reported in both with what the source
/// expects. The driver cannot do it: it would read the expectations from the file, which a part of
/// it shares with the others.
static LogicalResult checkSource(const SourceText &source, DialectRegistry &registry,
                                 const MlirOptMainConfig &config, bool exportHlo,
                                 raw_ostream &output) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources = source.sources();
  SourceMgrDiagnosticVerifierHandler verifier(sources, &context,
                                              config.verifyDiagnosticsLevel());
  if (OwningOpRef<ModuleOp> module = source.import(context)) {
    PassManager manager(&context, (*module)->getName().getStringRef(),
                        PassManager::Nesting::Implicit);
    manager.enableVerifier(config.shouldVerifyPasses());
    if (failed(applyPassManagerCLOptions(manager)) || failed(config.setupPassPipeline(manager)))
      return failure();
    if (succeeded(manager.run(*module))) {
      LogicalResult written = success();
      if (exportHlo)
        written = writeHlo(*module, output);
      else if (config.shouldEmitBytecode())
        written = writeBytecodeToFile(*module, output);
      else
        output << *module << '\n';
      if (failed(written))
        return failure();
    }
  }
  return verifier.verify();
}

/// Runs the driver on a buffer, and writes the module that comes out as HLO text.
static LogicalResult runAndExportHlo(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                     DialectRegistry &registry, MlirOptMainConfig config,
                                     raw_ostream &output) {
  // Bytecode keeps locations, and costs less than text.
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(MlirOptMain(stream, std::move(buffer), registry, config.emitBytecode(true))))
    return failure();
  // Nothing is printed where diagnostics are checked.
  if (bytecode.empty())
    return success();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler printer(sources, &context);
  // What the driver gave was verified.
  ParserConfig parser(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(bytecode, parser);
  return success(module && succeeded(writeHlo(*module, output)));
}

/// Runs the driver on a buffer of MLIR.
static LogicalResult runOnMlir(std::unique_ptr<llvm::MemoryBuffer> buffer,
                               DialectRegistry &registry, const MlirOptMainConfig &config,
                               bool exportHlo, raw_ostream &output) {
  return exportHlo ? runAndExportHlo(std::move(buffer), registry, config, output)
                   : MlirOptMain(output, std::move(buffer), registry, config);
}

/// Runs the driver on a source.
static LogicalResult runOnSource(const SourceText &source, DialectRegistry &registry,
                                 const MlirOptMainConfig &config, bool exportHlo,
                                 raw_ostream &output) {
  if (config.shouldVerifyDiagnostics())
    return checkSource(source, registry, config, exportHlo, output);
  std::string bytecode;
  if (failed(importSource(source, registry, bytecode)))
    return failure();
  // Named otherwise than the file, so that diagnostics show the source's lines.
  auto buffer = llvm::MemoryBuffer::getMemBuffer(bytecode, "<imported>",
                                                 /*RequiresNullTerminator=*/false);
  return runOnMlir(std::move(buffer), registry, config, exportHlo, output);
}

/// The line that separates the parts of a source. The default is a comment of MLIR; where a comment
/// begins with '#', `# -----` is accepted too.
static std::string splitMarker(const SourceText &source, const MlirOptMainConfig &config) {
  StringRef marker = config.inputSplitMarker();
  bool isHash = source.language == TcLanguageTc || source.language == TcLanguageAxon;
  if (isHash && marker == kDefaultSplitMarker && !source.contents.contains(marker))
    return "# -----";
  return marker.str();
}

/// Runs the driver on each part of a source.
static LogicalResult runOnParts(const SourceText &source, DialectRegistry &registry,
                                const MlirOptMainConfig &config, raw_ostream &output) {
  auto run = [&](std::unique_ptr<llvm::MemoryBuffer> part, const llvm::MemoryBufferRef &whole,
                 raw_ostream &os) {
    // Empty lines before it, so that places are those in the file.
    StringRef before(whole.getBufferStart(), part->getBufferStart() - whole.getBufferStart());
    std::string contents = std::string(before.count('\n'), '\n') + part->getBuffer().str();
    SourceText text{source.language, source.relaxed, source.fileName, contents};
    MlirOptMainConfig ofPart = config;
    ofPart.splitInputFile("");
    return runOnSource(text, registry, ofPart, /*exportHlo=*/false, os);
  };
  return splitAndProcessBuffer(llvm::MemoryBuffer::getMemBuffer(source.contents), run, output,
                               splitMarker(source, config), config.outputSplitMarker());
}

/// The exit code for a wrong command line.
static constexpr int wrongCommandLine = 2;

/// Whether the command line gives a pass pipeline for modules. The reason is printed otherwise.
static bool hasPipeline(const MlirOptMainConfig &config, const DialectRegistry &registry) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  PassManager manager(&context, ModuleOp::getOperationName(), PassManager::Nesting::Implicit);
  return succeeded(config.setupPassPipeline(manager));
}

int tcOptMain(int argc, char **argv) {
#ifdef SIGPIPE
  // Rust ignores the signal; a reader that stops early, as `head` does, ends mlir-opt silently.
  std::signal(SIGPIPE, SIG_DFL);
#endif
  llvm::InitLLVM init(argc, argv);
  registerAllPasses();
  DialectRegistry registry;
  registerEverything(registry);
  static llvm::cl::opt<bool> relaxed(
      "relaxed", llvm::cl::cat(sourceOptions),
      llvm::cl::desc("Accept the spellings of the TC documentation: '-> A', 'int', float indices"));
  static llvm::cl::opt<TcLanguage> givenLanguage(
      "x", llvm::cl::cat(sourceOptions), llvm::cl::desc("The language of the input"),
      llvm::cl::values(clEnumValN(TcLanguageMlir, "mlir", "MLIR text or bytecode"),
                       clEnumValN(TcLanguageTc, "tc", "Tensor comprehensions"),
                       clEnumValN(TcLanguageHlo, "hlo", "The HLO text of XLA"),
                       clEnumValN(TcLanguageTml, "tml", "Tensor expressions without indices"),
                       clEnumValN(TcLanguageAxon, "axon", "Functions whose shapes are inferred")));
  static llvm::cl::opt<bool> exportHlo("export-hlo", llvm::cl::cat(sourceOptions),
                                       llvm::cl::desc("Write the module as HLO text"));
  static llvm::cl::opt<std::string> explain(
      "explain", llvm::cl::cat(sourceOptions), llvm::cl::value_desc("code"),
      llvm::cl::desc("Print the explanation of a diagnostic code, such as TC0024"));
  static llvm::cl::opt<std::string> inputName(llvm::cl::Positional, llvm::cl::desc("<input file>"),
                                              llvm::cl::init("-"));
  static llvm::cl::opt<std::string> outputName("o", llvm::cl::desc("Output filename"),
                                               llvm::cl::value_desc("filename"),
                                               llvm::cl::init("-"));
  std::string help = registerCLIOptions(
      "MLIR optimizer driver with the hlo, tc, tml, axon and imap dialects\n"
      "\n"
      "  tc-opt matmul.tc --infer-ranges            import and infer the ranges\n"
      "  tc-opt --infer-ranges --fuse matmul.mlir   the same on MLIR text, then fuse\n"
      "  tc-opt --explain-ranges matmul.tc          the rounds of range inference\n"
      "  tc-opt model.hlo --cse --export-hlo        HLO text, from HLO or MLIR\n"
      "  tc-opt --print-indexing-maps model.hlo     the elements that each instruction reads\n"
      "  tc-opt --print-indexing-maps=only=dot.1 model.hlo    one instruction or computation\n"
      "  tc-opt model.axon --infer-shapes           the signatures of an Axon program\n"
      "  tc-opt model.axon --axon-infer-shapes      the program with the types of all expressions\n"
      "  tc-opt matmul.tc --infer-ranges --fuse --lower-to-cpu    the llvm dialect\n"
      "\n"
      "Exit codes: 0, 1 for an error in the program, 2 for one in the command line.\n",
      registry);
  // With a stream for errors, LLVM returns instead of ending the process with 1.
  if (!llvm::cl::ParseCommandLineOptions(argc, argv, help, &llvm::errs()))
    return wrongCommandLine;
  if (explain.getNumOccurrences())
    return explainCode(explain) ? 0 : wrongCommandLine;
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, inputName, outputName, registry));
  bool isSplit = !config.inputSplitMarker().empty();
  if (exportHlo && isSplit) {
    llvm::errs() << "error: '--export-hlo' writes one module, which '--split-input-file' does not "
                    "give\n";
    return wrongCommandLine;
  }
  // Without an implicit module, the input decides which operation the passes run on.
  if (!config.shouldUseExplicitModule() && !hasPipeline(config, registry))
    return wrongCommandLine;

  if (inputName == "-" && llvm::sys::Process::FileDescriptorIsDisplayed(fileno(stdin)))
    llvm::errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n";
  std::string message;
  auto keep = [](void *text, MlirStringRef reason) {
    *static_cast<std::string *>(text) = unwrap(reason).str();
  };
  if (inputName != "-" && !tcRustCheckInput(wrap(StringRef(inputName)), &message, keep)) {
    llvm::errs() << message << '\n';
    return 1;
  }
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(inputName, &message);
  if (!buffer) {
    llvm::errs() << message << '\n';
    return 1;
  }
  std::string name = buffer->getBufferIdentifier().str();
  if (!config.shouldVerifyDiagnostics())
    registry.addExtension(TypeID::get<LimitSources>(), std::make_unique<LimitSources>(name));
  TcLanguage language = givenLanguage.getNumOccurrences()
                            ? givenLanguage
                            : tcRustLanguage(wrap(StringRef(name)), wrap(buffer->getBuffer()));
  auto output = openOutputFile(outputName, &message);
  if (!output) {
    llvm::errs() << message << '\n';
    return 1;
  }
  SourceText source{language, relaxed, name, buffer->getBuffer()};
  LogicalResult result =
      language == TcLanguageMlir
          ? runOnMlir(std::move(buffer), registry, config, exportHlo, output->os())
      : isSplit ? runOnParts(source, registry, config, output->os())
                : runOnSource(source, registry, config, exportHlo, output->os());
  if (failed(result))
    return 1;
  output->keep();
  return 0;
}

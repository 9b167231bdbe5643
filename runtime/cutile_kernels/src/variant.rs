//! One specialised kernel: what distinguishes its machine code from any other's.

use crate::ffi_util::{DType, Failure, LAUNCH, Outcome};
use crate::view::{Shape, View};
use crate::{attention, matmul, softmax};
use cutile_compiler::ast::Module;
use cutile_compiler::compile_api::KernelCompiler;
use cutile_compiler::hints::{CompileOptions, DebugInfoLevel};
use cutile_compiler::specialization::{DivHint, SpecializationBits};
use cutile_ir::bytecode::BytecodeVersion;
use std::fmt::Write;

pub const MAX_GENERICS: usize = 12;
pub const MAX_OPERANDS: usize = 5;

/// sm_90 needs 13.3, which is also the oldest assembler that is used.
const BYTECODE: BytecodeVersion = BytecodeVersion::V13_3;

/// Compiling a kernel recurses deeply: more than a thread of Python has.
const COMPILER_STACK: usize = 64 << 20;

/// A tensor parameter of a kernel.
pub struct Operand {
    pub name: &'static str,
    pub rank: usize,
    /// Whether its elements are of the variant's output type.
    pub of_output: bool,
    /// Scalar parameters that repeat strides of it.
    pub scalars: &'static [&'static str],
    /// The scalar parameter that repeats its last size, where the kernel is specialised for one
    /// of a multiple of 16 bytes.
    pub last: Option<&'static str>,
}

/// Which of a variant's types stands for one of a kernel's type parameters.
#[derive(Clone, Copy)]
pub enum Slot {
    Input,
    Output,
}

/// A kernel as written, before its generics are given.
pub struct Source {
    pub module: &'static str,
    pub entry: &'static str,
    pub ast: fn() -> Module,
    pub types: &'static [Slot],
    pub generics: usize,
    pub operands: &'static [Operand],
}

/// Requests to the assembler; 0 leaves its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Options {
    pub occupancy: i32,
    pub ctas: i32,
    pub warps: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    SoftmaxRows,
    SoftmaxAhead,
    SoftmaxOnline,
    SoftmaxPartial,
    SoftmaxFinish,
    Matmul,
    MatmulSplit,
    Split,
    Attention,
}

impl Kernel {
    pub fn source(self) -> &'static Source {
        match self {
            Self::SoftmaxRows => &softmax::ROWS,
            Self::SoftmaxAhead => &softmax::AHEAD,
            Self::SoftmaxOnline => &softmax::ONLINE,
            Self::SoftmaxPartial => &softmax::PARTIAL,
            Self::SoftmaxFinish => &softmax::FINISH,
            Self::Matmul => &matmul::MATMUL,
            Self::MatmulSplit => &matmul::MATMUL_SPLIT,
            Self::Split => &matmul::SPLIT,
            Self::Attention => &attention::ATTENTION,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    pub kernel: Kernel,
    pub input: DType,
    pub output: DType,
    pub generics: [i32; MAX_GENERICS],
    pub shapes: [Shape; MAX_OPERANDS],
    pub options: Options,
}

impl Variant {
    pub fn new(kernel: Kernel, types: [DType; 2], given: &[i32], options: Options) -> Self {
        debug_assert_eq!(given.len(), kernel.source().generics);
        let mut generics = [0; MAX_GENERICS];
        generics[..given.len()].copy_from_slice(given);
        let [input, output] = types;
        Self {
            kernel,
            input,
            output,
            generics,
            shapes: Default::default(),
            options,
        }
    }

    /// Specialises for the operands' strides and alignment, in the kernel's order.
    pub fn views(&mut self, views: &[View]) {
        debug_assert_eq!(views.len(), self.kernel.source().operands.len());
        let operands = self.kernel.source().operands;
        for ((shape, view), operand) in self.shapes.iter_mut().zip(views).zip(operands) {
            *shape = view.shape;
            shape.filled &= operand.last.is_some();
        }
    }

    fn generics(&self) -> Vec<String> {
        let source = self.kernel.source();
        let types = source.types.iter().map(|slot| match slot {
            Slot::Input => self.input,
            Slot::Output => self.output,
        });
        let values = self.generics.iter().take(source.generics);
        types
            .map(|t| t.name().to_owned())
            .chain(values.map(i32::to_string))
            .collect()
    }

    /// A file name of its own for every variant.
    pub fn name(&self) -> String {
        let Options {
            occupancy,
            ctas,
            warps,
        } = self.options;
        let mut name = self.kernel.source().entry.to_owned();
        for generic in self.generics() {
            name.push('-');
            name += &generic;
        }
        name.push('-');
        for shape in &self.shapes[..self.kernel.source().operands.len()] {
            name.push(match shape {
                Shape { filled: true, .. } => 'f',
                Shape { aligned: true, .. } => 'a',
                Shape { unit: true, .. } => 'u',
                _ => 's',
            });
        }
        let _ = write!(name, "-o{occupancy}-c{ctas}-w{warps}");
        name
    }

    fn strides(&self) -> Vec<(&'static str, Vec<i32>)> {
        let operands = self.kernel.source().operands.iter().zip(&self.shapes);
        operands
            .map(|(operand, shape)| {
                let mut strides = vec![-1; operand.rank];
                if shape.unit {
                    strides[operand.rank - 1] = 1;
                }
                (operand.name, strides)
            })
            .collect()
    }

    fn specialisations(&self) -> Vec<(&'static str, SpecializationBits)> {
        let operands = self.kernel.source().operands.iter().zip(&self.shapes);
        operands
            .map(|(operand, shape)| {
                let size = if operand.of_output {
                    self.output
                } else {
                    self.input
                }
                .size() as i32;
                let outer = if shape.aligned { 16 / size } else { 1 };
                let hint = |divisor| DivHint { divisor, max: 16 };
                let mut stride_div = vec![hint(outer); operand.rank];
                stride_div[operand.rank - 1] = hint(1);
                let mut stride_one = vec![false; operand.rank];
                stride_one[operand.rank - 1] = shape.unit;
                let bits = SpecializationBits {
                    shape_div: vec![hint(1); operand.rank],
                    stride_div,
                    stride_one,
                    base_ptr_div: hint(if shape.aligned { 16 } else { size }),
                    elements_disjoint: true,
                };
                (operand.name, bits)
            })
            .collect()
    }

    fn scalar_hints(&self) -> Vec<(&'static str, DivHint)> {
        let operands = self.kernel.source().operands.iter().zip(&self.shapes);
        operands
            .filter(|(_, shape)| shape.aligned)
            .flat_map(|(operand, shape)| {
                let dtype = if operand.of_output {
                    self.output
                } else {
                    self.input
                };
                let hint = DivHint {
                    divisor: 16 / dtype.size() as i32,
                    max: 16,
                };
                let last = operand.last.filter(|_| shape.filled);
                operand
                    .scalars
                    .iter()
                    .copied()
                    .chain(last)
                    .map(move |name| (name, hint))
            })
            .collect()
    }

    fn compile_options(&self) -> CompileOptions {
        let mut options = CompileOptions::default().debug_info(DebugInfoLevel::None);
        if self.options.occupancy > 0 {
            options = options.occupancy(self.options.occupancy);
        }
        if self.options.ctas > 0 {
            options = options.num_cta_in_cga(self.options.ctas);
        }
        if self.options.warps > 0 {
            options = options.num_worker_warps_per_cta(self.options.warps);
        }
        options
    }

    /// Tile IR bytecode for an architecture; needs neither a GPU nor the assembler.
    pub fn bytecode(&self, architecture: &str) -> Outcome<Vec<u8>> {
        let (variant, architecture) = (*self, architecture.to_owned());
        let compiling = std::thread::Builder::new()
            .stack_size(COMPILER_STACK)
            .spawn(move || variant.bytecode_here(&architecture))
            .map_err(|e| Failure::new(LAUNCH, format!("no thread to compile in: {e}")))?;
        compiling.join().unwrap_or_else(|_| {
            Err(Failure::new(
                LAUNCH,
                format!("the tile compiler panicked on {}", self.name()),
            ))
        })
    }

    fn bytecode_here(&self, architecture: &str) -> Outcome<Vec<u8>> {
        let source = self.kernel.source();
        let strides = self.strides();
        let strides: Vec<_> = strides
            .iter()
            .map(|(name, s)| (*name, s.as_slice()))
            .collect();
        KernelCompiler::new(source.ast, source.module, source.entry)
            .generics(self.generics())
            .strides(&strides)
            .spec_args(&self.specialisations())
            .scalar_hints(&self.scalar_hints())
            .target(architecture)
            .options(self.compile_options())
            .bytecode_version(BYTECODE)
            .compile()
            .and_then(|artifacts| artifacts.bytecode())
            .map_err(|e| Failure::new(LAUNCH, format!("{}: {e}", self.name())))
    }
}

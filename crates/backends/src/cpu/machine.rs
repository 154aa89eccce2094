//! CPU descriptions: vector registers, and the work that is worth several threads.

use crate::llvm::{self, Machine};

/// Vector operations that take a few times as long as to start threads and to wait for them:
/// 10 to 30 microseconds.
const START_THREADS: i64 = 1 << 15;

impl Machine {
    /// The machine that runs this program, with the features it reports: the name of the
    /// processor alone may promise more or fewer, on a virtual machine above all.
    pub fn host() -> Self {
        llvm::host()
    }

    /// A named processor of this machine's architecture and system.
    pub fn cpu(name: &str) -> Self {
        Self { cpu: name.to_string(), features: String::new(), ..Self::host() }
    }

    /// The processor of a command line: `native` is [`host`](Self::host).
    pub fn named(name: &str) -> Self {
        match name {
            "native" => Self::host(),
            name => Self::cpu(name),
        }
    }

    /// The numbers of this many bits that a vector register holds.
    pub fn vector_length(&self, element_bits: u32) -> i64 {
        i64::from((self.vector_registers().0 / element_bits.max(1)).max(1))
    }

    /// The operations on 32-bit numbers that are worth several threads: what one thread does in
    /// [`START_THREADS`] vector operations.
    pub(super) fn parallel_threshold(&self) -> i64 {
        self.vector_length(32) * START_THREADS
    }

    /// The width of the vector registers in bits and their number. Where only the name of
    /// a processor is known, what its generation is known to have.
    pub(super) fn vector_registers(&self) -> (u32, u32) {
        #[rustfmt::skip]
        const AVX512: &[&str] = &[
            "x86-64-v4", "avx512", "cannonlake", "cascadelake", "cooperlake", "emeraldrapids",
            "graniterapids", "icelake", "rocketlake", "sapphirerapids", "tigerlake", "znver4",
            "znver5",
        ];
        #[rustfmt::skip]
        const SSE: &[&str] = &[
            "x86-64", "x86-64-v2", "core2", "generic", "i686", "k8", "nehalem", "penryn",
            "pentium4", "silvermont", "westmere",
        ];
        if !self.triple.starts_with("x86_64") {
            return (128, 32);
        }
        let has = |feature: &str| self.features.split(',').any(|it| it == feature);
        if has("-avx512f") && has("+avx") {
            (256, 16)
        } else if has("-avx512f") && has("-avx") {
            (128, 16)
        } else if has("+avx512f") || AVX512.iter().any(|it| self.cpu.contains(it)) {
            (512, 32)
        } else if SSE.contains(&self.cpu.as_str()) && !has("+avx") {
            (128, 16)
        } else {
            (256, 16)
        }
    }
}

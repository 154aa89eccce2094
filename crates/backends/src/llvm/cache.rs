//! Objects on disk, which later processes load instead of generating them again.
//!
//! An entry is a file in the folder of the cache. Its name is the [`Key`], so that an entry is never out of date. Its
//! contents are [`MAGIC`], a checksum, and the object. Entries are renamed into place: processes and threads that write
//! one key at the same time write the same object, and readers find all of it or none.

use super::{Module, OPTIONS, divide::Bitcode};
use crate::backend::Error;
use llvm_sys::{blake3::*, core::LLVMGetVersion};
use std::{
    ffi::c_uint,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    mem::MaybeUninit,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};
use tc_passes::target::Machine;

/// The first bytes of an entry. Its number has to change if the same key may stand for other code.
const MAGIC: &[u8] = b"tc-object-1\n";
/// The bytes of a hash.
const HASH_BYTES: usize = LLVM_BLAKE3_OUT_LEN;
/// The most bytes that the entries have after a program was added.
const MAX_BYTES: u64 = 1 << 26;

/// A hash of fields. Their lengths count, too.
fn hash<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> [u8; HASH_BYTES] {
    let mut hasher = MaybeUninit::zeroed();
    let mut result = [0; HASH_BYTES];
    // SAFETY: the hasher is initialized, and all pointers have as many bytes as is said.
    unsafe {
        llvm_blake3_hasher_init(hasher.as_mut_ptr());
        for field in fields {
            for bytes in [&(field.len() as u64).to_le_bytes()[..], field] {
                let (start, length) = (bytes.as_ptr().cast(), bytes.len());
                llvm_blake3_hasher_update(hasher.as_mut_ptr(), start, length);
            }
        }
        llvm_blake3_hasher_finalize(hasher.as_mut_ptr(), result.as_mut_ptr(), HASH_BYTES);
    }
    result
}

/// All that decides the object of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key([u8; HASH_BYTES]);

impl Key {
    /// Of a module that is prepared, but not optimized.
    pub fn of(module: &Module) -> Self {
        let [mut major, mut minor, mut patch]: [c_uint; 3] = [0; 3];
        // SAFETY: LLVM writes three numbers.
        unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
        let llvm = format!("{major}.{minor}.{patch}");
        let (passes, bitcode) = (module.passes(), Bitcode::of(module));
        let Machine { triple, cpu, features, .. } = &module.target;
        let texts = [env!("CARGO_PKG_VERSION"), &llvm, triple, cpu, features, &passes, "object"];
        let options = OPTIONS.iter().map(|it| it.to_bytes());
        let fields = [MAGIC].into_iter().chain(texts.map(str::as_bytes)).chain(options);
        Self(hash(fields.chain([bitcode.bytes()])))
    }

    /// The name of the entry.
    fn name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn checksum(&self, object: &[u8]) -> [u8; HASH_BYTES] {
        hash([&self.0, object])
    }
}

/// A folder of entries.
pub(crate) struct Cache(PathBuf);

impl Cache {
    /// Opens a folder. One that does not exist is made, for this user only.
    ///
    /// # Errors
    /// It cannot be made, or other users could put code there.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let open = || -> io::Result<_> {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            // A link could be changed after the check of its folder.
            let folder = fs::canonicalize(folder)?;
            let metadata = fs::metadata(&folder)?;
            Ok((folder, metadata))
        };
        let refuse = |reason| Error::Cache { folder: folder.display().to_string(), reason };
        let (path, metadata) = open().map_err(|error| refuse(error.to_string()))?;
        // SAFETY: it only returns a number.
        let user = unsafe { libc::geteuid() };
        match refusal(metadata.uid(), metadata.mode(), user) {
            Some(reason) => Err(refuse(reason)),
            None => Ok(Self(path)),
        }
    }

    /// The object of a key, if there is one that is not damaged. It is the last one to be removed from now on.
    pub(super) fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let mut file = File::open(self.0.join(key.name())).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (checksum, object) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_BYTES)?;
        if checksum != key.checksum(object) {
            return None;
        }
        // An entry whose time cannot be set is removed earlier.
        let _ = file.set_modified(SystemTime::now());
        Some(bytes.split_off(MAGIC.len() + HASH_BYTES))
    }

    /// Adds an entry, or replaces a damaged one.
    ///
    /// A failure, such as a full disk, is not an error: the caller has the object, and the next process generates it again.
    pub(super) fn put(&self, key: &Key, object: &[u8]) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let (name, number) = (key.name(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let temporary = self.0.join(format!("{name}.{}.{number}", process::id()));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
            for bytes in [MAGIC, &key.checksum(object), object] {
                file.write_all(bytes)?;
            }
            fs::rename(&temporary, self.0.join(&name))
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }

    /// Removes the entries that were not used for the longest time, until the others have [`MAX_BYTES`] at most.
    pub(super) fn trim(&self) {
        self.trim_to(MAX_BYTES);
    }

    fn trim_to(&self, max_bytes: u64) {
        let Ok(files) = fs::read_dir(&self.0) else { return };
        // Files that a process left when it was stopped count, and files of other names do not.
        let files = files.flatten().filter(|it| is_entry(&it.file_name().to_string_lossy()));
        let mut entries: Vec<_> = files
            .filter_map(|file| {
                let metadata = file.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), file.path()))
            })
            .collect();
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in entries {
            if total <= max_bytes {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
    }
}

/// Why code in a folder cannot be trusted.
fn refusal(owner: u32, mode: u32, user: u32) -> Option<String> {
    let permissions = mode & 0o777;
    if owner != user {
        Some("it belongs to another user; expected a folder of your own".to_string())
    } else if permissions & 0o022 != 0 {
        Some(format!("others can write there (mode {permissions:04o}); try 'chmod 700' on it"))
    } else {
        None
    }
}

/// Whether a file is an entry, or one that is to become an entry.
fn is_entry(name: &str) -> bool {
    let hash = name.split('.').next().unwrap_or_default();
    hash.len() == 2 * HASH_BYTES && hash.bytes().all(|it| it.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs::Permissions, os::unix::fs::PermissionsExt, thread, time::Duration};

    /// A folder that does not exist, and a cache in it.
    fn cache(name: &str) -> Cache {
        let folder = env::temp_dir().join(format!("tc-cache-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        Cache::open(&folder.join("tc")).expect("a new folder")
    }

    fn remove(cache: &Cache) {
        fs::remove_dir_all(cache.0.parent().expect("it is in a folder")).expect("it is removed");
    }

    fn key(number: u8) -> Key {
        Key(hash([&[number][..]]))
    }

    fn names(cache: &Cache) -> Vec<String> {
        let files = fs::read_dir(&cache.0).expect("the folder can be read").flatten();
        let mut names: Vec<_> =
            files.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn hashes_are_those_of_blake3() {
        // The hash of no bytes among the test vectors of BLAKE3.
        let empty = Key(hash([]));
        assert_eq!(
            empty.name(),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
        assert_ne!(hash([&b"a"[..], b"bc"]), hash([&b"ab"[..], b"c"]));
        assert_ne!(hash([&b""[..]]), hash([]));
    }

    #[test]
    fn an_object_is_found_under_its_key() {
        let cache = cache("hit");
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), b"one");
        cache.put(&key(2), b"");
        assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"one"[..]));
        assert_eq!(cache.get(&key(2)).as_deref(), Some(&b""[..]));
        assert_eq!(cache.get(&key(3)), None);
        let again = Cache::open(&cache.0).expect("the folder of before");
        assert_eq!(again.get(&key(1)).as_deref(), Some(&b"one"[..]));
        assert_eq!(names(&cache).len(), 2, "temporary files are renamed");
        remove(&cache);
    }

    #[test]
    fn a_damaged_entry_is_ignored_and_replaced() {
        let cache = cache("damaged");
        cache.put(&key(1), b"object");
        let path = cache.0.join(key(1).name());
        let whole = fs::read(&path).expect("the entry is there");
        let mut damaged: Vec<_> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|place| {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            bytes
        }));
        damaged.push([&whole[..], b"more"].concat());
        for bytes in damaged {
            fs::write(&path, &bytes).expect("the entry is written");
            assert_eq!(cache.get(&key(1)), None, "{bytes:?}");
            cache.put(&key(1), b"object");
            assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"object"[..]));
        }
        fs::rename(&path, cache.0.join(key(2).name())).expect("the entry is renamed");
        assert_eq!(cache.get(&key(2)), None, "an entry of another key");
        remove(&cache);
    }

    #[test]
    fn folders_of_this_user_only_are_used() {
        let cache = cache("mode");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!(mode(&cache.0), 0o700);
        cache.put(&key(1), b"object");
        assert_eq!(mode(&cache.0.join(key(1).name())), 0o600);
        for (mode, is_used) in [(0o755, true), (0o720, false), (0o702, false), (0o777, false)] {
            fs::set_permissions(&cache.0, Permissions::from_mode(mode)).expect("the mode is set");
            match Cache::open(&cache.0) {
                Ok(_) => assert!(is_used, "{mode:o}"),
                Err(error) => {
                    let reason = format!("others can write there (mode 0{mode:o})");
                    assert!(!is_used && error.to_string().contains(&reason), "{error}");
                }
            }
        }
        let file = cache.0.join("file");
        fs::write(&file, "").expect("a file");
        assert!(matches!(Cache::open(&file), Err(Error::Cache { .. })), "a file is no folder");
        assert_eq!(refusal(7, 0o040_700, 7), None);
        let reason = refusal(0, 0o040_700, 7).expect("it belongs to another user");
        assert!(reason.contains("another user"), "{reason}");
        remove(&cache);
    }

    #[test]
    fn threads_write_the_same_key() {
        let cache = cache("threads");
        let object: Vec<u8> = (0..1 << 16).map(|number: u32| number as u8).collect();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        cache.put(&key(1), &object);
                        assert!(cache.get(&key(1)).as_ref() == Some(&object), "part of an entry");
                    }
                });
            }
        });
        assert_eq!(names(&cache), [key(1).name()]);
        remove(&cache);
    }

    #[test]
    fn an_entry_that_cannot_be_written_is_missing() {
        let cache = cache("gone");
        remove(&cache);
        cache.put(&key(1), b"object");
        cache.trim();
        assert_eq!(cache.get(&key(1)), None);
    }

    #[test]
    fn the_entries_of_long_ago_are_removed() {
        let cache = cache("trim");
        let size = |object: &[u8]| (MAGIC.len() + HASH_BYTES + object.len()) as u64;
        for number in 0..4 {
            cache.put(&key(number), b"object");
            let file = File::open(cache.0.join(key(number).name())).expect("the entry is there");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number.into());
            file.set_modified(time).expect("the time is set");
        }
        fs::write(cache.0.join("notes"), [0; 1000]).expect("a file of another name");
        assert!(cache.get(&key(0)).is_some(), "it is used");
        cache.trim_to(2 * size(b"object"));
        let kept = [0, 1, 2, 3].map(|number| cache.get(&key(number)).is_some());
        assert_eq!(kept, [true, false, false, true]);
        assert_eq!(names(&cache).len(), 3);
        remove(&cache);
    }
}

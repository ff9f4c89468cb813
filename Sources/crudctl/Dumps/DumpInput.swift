import ArgumentParser
import Glibc

/// The input of a load, which is read twice: once to check it, once to load it.
///
/// A file is read in place. What can be read only once, such as a pipe, is first copied to a temporary file that has no
/// name any more, so that nothing of it is left behind.
struct DumpInput {
    /// For messages.
    private let name: String
    private let file: OpenFile
    /// Where the input begins in the file.
    private let start: Int
    /// In bytes.
    let size: Int

    /// - Parameters:
    ///   - path: the file; `-` for standard input.
    ///   - content: what it has, for whoever is to type it.
    ///   - progress: is called with the number of bytes that have been copied.
    init(_ path: String, holding content: String = "a dump", progress: (Int) -> Void) throws {
        name = path == "-" ? "standard input" : path
        if path == "-", isatty(STDIN_FILENO) == 1 {
            StandardError.write("crudctl: reading \(content) from the terminal; end it with Ctrl-D\n")
        }
        let number = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw Self.cannotRead(name) }
        let source = OpenFile(number)
        start = max(0, Int(lseek(number, 0, SEEK_CUR)))
        let end = Int(lseek(number, 0, SEEK_END))
        if end >= 0 {
            (file, size) = (source, max(0, end - start))
        } else {
            (file, size) = try Self.copy(source, name, progress)
        }
    }

    /// A file of this size that has been written.
    fileprivate init(_ file: OpenFile, size: Int) {
        name = "a temporary file"
        self.file = file
        start = 0
        self.size = size
    }

    /// The bytes at an offset, at least one unless the input ends there.
    func read(at offset: Int, atMost count: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: min(count, max(0, size - offset))) { buffer, filled in
            while true {
                // The call writes at most the size of the buffer.
                let count = unsafe pread(file.number, buffer.baseAddress, buffer.count, off_t(start + offset))
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw Self.cannotRead(name) }
                filled = count
                return
            }
        }
    }

    /// Copies a file that can be read only once.
    private static func copy(
        _ source: OpenFile, _ name: String, _ progress: (Int) -> Void
    ) throws -> (file: OpenFile, size: Int) {
        var copy = try TemporaryDump()
        var chunk = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            let count = FileInput.read(source.number, into: &chunk)
            guard count >= 0 else { throw cannotRead(name) }
            guard count > 0 else { return (copy.file, copy.size) }
            try copy.write(chunk[..<count])
            progress(copy.size)
        }
    }

    private static func cannotRead(_ name: String) -> ValidationError {
        ValidationError("cannot read \(name): \(ErrorNumber.message)")
    }
}

/// A temporary file that has no name any more, so that nothing of it is left behind.
struct TemporaryDump {
    fileprivate let file: OpenFile
    private let directory: String
    fileprivate private(set) var size = 0

    init() throws {
        // The value is copied here, before anything else can change the environment.
        let variable = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? ""
        // /tmp may be in memory.
        directory = variable.isEmpty ? "/var/tmp" : variable
        var path = Array("\(directory)/crudctl.XXXXXX".utf8CString)
        let number = unsafe mkstemp(&path)
        guard number >= 0 else { throw ErrorNumber.cannotWrite("a temporary file in \(directory)") }
        file = OpenFile(number)
        unsafe unlink(path)
    }

    /// Appends bytes.
    mutating func write(_ bytes: some RandomAccessCollection<UInt8>) throws {
        guard FileOutput.write(ArraySlice(bytes), to: file.number) else {
            throw ErrorNumber.cannotWrite("a temporary file in \(directory)")
        }
        size += bytes.count
    }

    /// What has been written, to be read.
    func input() -> DumpInput { DumpInput(file, size: size) }
}

/// A descriptor that is closed with its last reference.
private final class OpenFile {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }
}

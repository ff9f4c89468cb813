import ArgumentParser
import CRUDWire
import Glibc

/// The ITEM of a command line: JSON text, `@FILE`, or `-` or nothing for standard input.
struct ItemArgument {
    /// The largest item that any daemon accepts.
    private static let maximumBytes = 512 << 20

    private let argument: String?

    init(_ argument: String?) {
        self.argument = argument
    }

    /// The item's text, checked to be JSON.
    func text() throws -> [UInt8] {
        let text =
            switch argument {
            case nil, "-": try standardInput()
            case let file? where file.hasPrefix("@"): try contents(of: String(file.dropFirst()))
            case let text?: Array(text.utf8)
            }
        try RawJSON.check(text, what: "the item")
        return text
    }

    private func standardInput() throws -> [UInt8] {
        if isatty(STDIN_FILENO) == 1 {
            StandardError.write("crudctl: reading the item (JSON) from the terminal; end it with Ctrl-D\n")
        }
        return try read(STDIN_FILENO, "standard input")
    }

    private func contents(of path: String) throws -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw ValidationError("Cannot read \(path): \(ErrorNumber.message).") }
        defer { close(file) }
        return try read(file, path)
    }

    private func read(_ file: Int32, _ name: String) throws -> [UInt8] {
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            // The call writes at most the size of the chunk.
            let count = chunk.withUnsafeMutableBytes { unsafe Glibc.read(file, $0.baseAddress, $0.count) }
            if count == 0 { return text }
            if count < 0 {
                if errno == EINTR { continue }
                throw ValidationError("Cannot read \(name): \(ErrorNumber.message).")
            }
            text += chunk[..<count]
            guard text.count <= Self.maximumBytes else {
                throw ValidationError("\(name) is larger than any item may be.")
            }
        }
    }
}

import Synchronization

/// Shared objects that a test compiles from C.
package enum CompiledPlugin {
    /// What has been compiled in this process, by what the compiler was given: many tests need the same, each its own
    /// copy.
    private static let compiled = Mutex<[[String]: [UInt8]]>([:])

    /// Compiles a source of `Tests/Plugins`.
    ///
    /// - Parameter definitions: `NAME=VALUE` each.
    package static func compile(_ source: String, definitions: [String] = [], to path: String) throws {
        try run(definitions.map { "-D\($0)" } + ["\(BuildProducts.packageDirectory)/Tests/Plugins/\(source)"], path, "")
    }

    /// Compiles a source of `Plugins/Examples`.
    package static func compile(example: String, to path: String) throws {
        try run(["\(BuildProducts.packageDirectory)/Plugins/Examples/\(example)"], path, "")
    }

    /// Compiles C source text.
    package static func compile(text: String, to path: String) throws {
        try run(["-x", "c", "-"], path, text)
    }

    private static func run(_ arguments: [String], _ path: String, _ input: String) throws {
        try compiled.withLock { compiled in
            if let known = compiled[arguments + [input]] {
                // Not into a file that is loaded.
                Files.remove(path)
                return try Files.write(known, to: path, mode: 0o755)
            }
            let headers = "\(BuildProducts.packageDirectory)/Sources/CRUDPluginABI/include"
            let outcome = try Command.run(
                "cc", ["-shared", "-fPIC", "-pthread", "-w", "-I", headers] + arguments + ["-o", path], input: input)
            guard outcome.status == .exited(0) else { throw Failure("cc: \(outcome.errors)") }
            try Files.setMode(0o755, of: path)
            compiled[arguments + [input]] = try Files.read(path)
        }
    }
}

import CRUDTestSupport

/// A copy of a plugin in a directory of its own, for `crudd-plugin-check`.
struct CheckedPlugin {
    /// How long a check of everything, or a compilation, may take on a busy machine.
    private static let timeout = Duration.seconds(600)

    let directory: TemporaryDirectory
    let path: String

    /// - Parameter product: such as `memory`.
    init(product: String) throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/plugin.so"
        try Files.copy(BuildProducts.path(of: "lib\(product).so"), to: path, mode: 0o755)
    }

    /// An example: a file of `Plugins/Examples`, in C or executable.
    init(example: String) throws {
        directory = try TemporaryDirectory()
        if example.hasSuffix(".c") {
            path = "\(directory.path)/plugin.so"
            try CompiledPlugin.compile(example: example, to: path)
        } else {
            path = "\(directory.path)/\(example)"
            try Files.copy(
                "\(BuildProducts.packageDirectory)/Plugins/Examples/\(example)", to: path, mode: 0o755)
        }
    }

    /// The SQLite plugin with a fault that `Tests/Plugins/faulty.c` names.
    init(fault: String) throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/plugin.so"
        try CompiledPlugin.compile(
            "faulty.c", definitions: ["FAULT=\(fault)", "PLUGIN=\"\(BuildProducts.path(of: "libsqlite.so"))\""],
            to: path)
    }

    /// The adapter at the end of the page for authors of plugins, compiled from there.
    init(documented page: String) throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/plugin.so"
        let text = String(decoding: try Files.read("\(BuildProducts.packageDirectory)/\(page)"), as: UTF8.self)
        let code = text.split(separator: "\n```swift\n").last?.split(separator: "\n```").first ?? ""
        let source = "\(directory.path)/Adapter.swift"
        try Files.write(String(code), to: source)
        let products = try BuildProducts.path(of: "crudd").split(separator: "/").dropLast().map { "/\($0)" }.joined()
        let objects = try ["CRUDPluginKit", "CRUDPluginABI", "CRUDJSON", "CRUDModel"].flatMap { module in
            try Files.names(in: "\(products)/\(module).build").filter { $0.hasSuffix(".o") }
                .map { "\(products)/\(module).build/\($0)" }
        }
        let outcome = try Command.run(
            "swiftc",
            [
                "-O", "-swift-version", "6", "-parse-as-library", "-emit-library", "-module-name", "Adapter", "-I",
                "\(products)/Modules", "-Xcc", "-fmodule-map-file=\(products)/CRUDPluginABI.build/module.modulemap",
                source, "-o", path,
            ] + objects, until: Deadline(Self.timeout))
        guard outcome.status == .exited(0) else { throw Failure("swiftc: \(outcome.errors)") }
        try Files.setMode(0o755, of: path)
    }

    /// Runs the suite; `$DIRECTORY` in the options stands for the directory.
    func check(options: String = "", inChild: Bool = false) throws -> Command.Outcome {
        let pieces = options.split(separator: "$DIRECTORY", omittingEmptySubsequences: false)
        return try Command.run(
            BuildProducts.path(of: "crudd-plugin-check"),
            [path, "--options", pieces.joined(separator: directory.path)] + (inChild ? ["--in-child"] : []),
            environment: ["HOME": directory.path, "XDG_CONFIG_HOME": ""], until: Deadline(Self.timeout))
    }
}

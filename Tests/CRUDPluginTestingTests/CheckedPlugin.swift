import CRUDTestSupport

/// A copy of a plugin in a directory of its own, for `crudd-plugin-host --check`.
struct CheckedPlugin {
    /// How long a check of everything may take on a busy machine.
    private static let timeout = Duration.seconds(240)

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

    /// Runs the suite; `$DIRECTORY` in the options stands for the directory.
    func check(options: String = "", inChild: Bool = false) throws -> Command.Outcome {
        let pieces = options.split(separator: "$DIRECTORY", omittingEmptySubsequences: false)
        return try Command.run(
            BuildProducts.path(of: "crudd-plugin-host"),
            ["--check", path, "--options", pieces.joined(separator: directory.path)] + (inChild ? ["--in-child"] : []),
            environment: ["HOME": directory.path, "XDG_CONFIG_HOME": ""], until: Deadline(Self.timeout))
    }
}

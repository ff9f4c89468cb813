import CRUDConfiguration
import CRUDModel
import CRUDPluginHost
import CRUDPluginTesting
import Glibc
import Logging

/// Checks whether a plugin conforms to the plugin contract, and prints a report.
enum CheckCommand {
    static let usage = """
        Usage: crudd-plugin-check PATH [--in-child] [--options YAML]
        Checks the plugin at PATH against the plugin contract: a shared object if PATH ends in .so, otherwise an
        executable that speaks the child protocol. It writes to the storage that the options name, in collections of its
        own, which it removes afterwards.

          --in-child      run a shared object in a child process, as an executable always is

        Exit statuses: 0 it conforms, 64 wrong usage, 69 its storage is not available, 70 it does not conform, 71 the
        system is out of a resource, 78 the plugin cannot be loaded or its options are invalid.
        """

    /// How long a child may take over a call: what a plugin does is checked, not how busy the machine is.
    private static let callTimeout = Duration.seconds(60)

    static func run(_ words: some Sequence<String>) -> Int32 {
        do {
            let arguments = try Arguments(words)
            let options = try OptionsText.json(yaml: arguments.options, source: "--options")
            let plugin = try load(arguments.path, inChild: arguments.isInChild, options: options)
            let suite = ConformanceSuite(
                ExportedPlugin(plugin), options: String(decoding: options, as: UTF8.self),
                crashWorkload: CrashWorkloadCommand.program(arguments.path, inChild: arguments.isInChild))
            return try CheckReport.print(suite, of: plugin) ? EXIT_SUCCESS : 70  // EX_SOFTWARE
        } catch let error as UsageError {
            StandardStream.error.write("crudd-plugin-check: \(error.message)\n\(usage)\n")
            return 64  // EX_USAGE
        } catch let invalid as InvalidConfiguration {
            StandardStream.error.write("\(invalid)\n")
            return 78  // EX_CONFIG
        } catch let failure as PluginFailure {
            StandardStream.error.write("crudd-plugin-check: \(failure.message)\(place(failure.pointer))\n")
            return failure.isFinal ? 78 : 71  // EX_CONFIG, EX_OSERR
        } catch let error as CallError {
            // What the plugin says is for its user; the name of a status is for its author.
            let reason = error.message.isEmpty ? error.description : error.message
            StandardStream.error.write(
                "crudd-plugin-check: the plugin does not open its storage: \(reason)\(place(error.pointer))\n")
            return error.isFinal ? 78 : 69  // EX_CONFIG, EX_UNAVAILABLE
        } catch let error as PluginLoadingError {
            StandardStream.error.write("crudd-plugin-check: \(error)\n")
            return error.kind == .system ? 71 : 78  // EX_OSERR, EX_CONFIG
        } catch {
            StandardStream.error.write("crudd-plugin-check: \(error)\n")
            return 70  // EX_SOFTWARE
        }
    }

    private static func place(_ pointer: String) -> String { pointer.isEmpty ? "" : " (option \(pointer))" }

    /// Loads a plugin from wherever it lies, or has children run it; it must be trustworthy all the same.
    ///
    /// - Throws: ``PluginLoadingError``, ``PluginFailure``.
    static func load(_ path: String, inChild: Bool, options: [UInt8]) throws -> Plugin {
        guard access(path, F_OK) == 0 else {
            throw PluginLoadingError(
                "there is no file \(path): a plugin is named by its file, such as /usr/lib/crudd/plugins/sqlite.so")
        }
        let isLibrary = path.hasSuffix(".so")
        if isLibrary, !inChild { return try load(path) }
        let absolute = absolute(path)
        let program: ChildCommand.Program =
            isLibrary ? .plugin(absolute, directories: [folder(of: absolute)]) : .executable([absolute])
        // A program that does not even begin says why on its standard error.
        let logger = Logger(label: "crudd-plugin-check") { StreamLogHandler.standardError(label: $0) }
        let command = ChildCommand(
            backend: "check", program: program, sha256: nil, limits: ChildCommand.Limits(callTimeout: callTimeout),
            loopCount: 0, launcher: try ChildCommand.findLauncher())
        let (plugin, check) = try Plugin.inChild(command, options: options, logger: logger)
        if let doubt = check.doubt { throw PluginLoadingError(doubt.message) }
        if let failure = check.failures.first { throw failure }
        return plugin
    }

    /// Loads a shared object.
    static func load(_ path: String) throws(PluginLoadingError) -> Plugin {
        let absolute = absolute(path)
        return try Plugin.load(PluginFile(named: absolute, in: [folder(of: absolute)], sha256: nil))
    }

    private static func absolute(_ path: String) -> String {
        let resolved = realpath(path, nil)
        defer { free(resolved) }
        return resolved.map { String(cString: $0) } ?? path
    }

    private static func folder(of path: String) -> String {
        let folder = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        return folder.isEmpty ? "/" : folder
    }

    private struct Arguments {
        private(set) var path: String
        private(set) var options = ""
        private(set) var isInChild = false

        init(_ words: some Sequence<String>) throws(UsageError) {
            var words = Array(words)[...]
            guard let path = words.popFirst(), !path.hasPrefix("-") else { throw UsageError("which plugin?") }
            self.path = path
            while let word = words.popFirst() {
                if word == "--options", let text = words.popFirst() {
                    options = text
                } else if word == "--in-child" {
                    isInChild = true
                } else if word.hasPrefix("--options=") {
                    options = String(word.dropFirst("--options=".count))
                } else {
                    throw UsageError(word == "--options" ? "--options wants YAML" : "unknown argument \(word)")
                }
            }
        }
    }

    /// Why a command line is invalid.
    private struct UsageError: Error {
        let message: String

        init(_ message: String) {
            self.message = message
        }
    }
}

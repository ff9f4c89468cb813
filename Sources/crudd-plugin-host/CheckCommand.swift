import CRUDConfiguration
import CRUDPluginTesting
import Glibc

/// Finds out whether a plugin keeps the plugin contract, and prints a report.
enum CheckCommand {
    static let usage = """
        Usage: crudd-plugin-host --check PATH [--options YAML] [--isolation inline|process]
        Checks the plugin at PATH, a shared object (.so) or an executable, against the plugin contract. It writes to the
        storage that the options name, in collections of its own, which it removes afterwards. A shared object is loaded
        (inline) unless it is to run in a child process, as an executable always does.

        Exit statuses: 0 it keeps the contract, 64 wrong usage, 69 its storage is not available, 70 it does not keep the
        contract, 78 the plugin or its options have a fault.
        """

    static func run(_ words: some Sequence<String>) -> Int32 {
        do {
            let arguments = try Arguments(words)
            let options = String(
                decoding: try OptionsText.json(yaml: arguments.options, source: "--options"), as: UTF8.self)
            let plugin = try PluginAtPath(arguments.path, isChild: arguments.isChild)
            let suite = ConformanceSuite(
                try plugin.start(options: options), options: options, storm: StormCommand.program(plugin))
            return try CheckReport(path: plugin.path).print(suite) ? EXIT_SUCCESS : 70  // EX_SOFTWARE
        } catch let fault as UsageFault {
            StandardStream.error.write("crudd-plugin-host: \(fault.message)\n\(usage)\n")
            return 64  // EX_USAGE
        } catch let invalid as InvalidConfiguration {
            StandardStream.error.write(invalid.faults.map { "\($0)\n" }.joined())
            return 78  // EX_CONFIG
        } catch let fault as CallFault {
            let place = fault.pointer.isEmpty ? "" : " (option \(fault.pointer))"
            StandardStream.error.write("crudd-plugin-host: the plugin does not open its storage: \(fault)\(place)\n")
            return fault.isFinal ? 78 : 69  // EX_CONFIG, EX_UNAVAILABLE
        } catch {
            StandardStream.error.write("crudd-plugin-host: \(error)\n")
            return 78  // EX_CONFIG
        }
    }

    private struct Arguments {
        private(set) var path: String
        private(set) var options = ""
        private(set) var isChild = false

        init(_ words: some Sequence<String>) throws(UsageFault) {
            var words = Array(words)[...]
            guard let path = words.popFirst(), !path.hasPrefix("-") else { throw UsageFault("--check wants a plugin") }
            self.path = path
            isChild = !path.hasSuffix(".so")
            while let word = words.popFirst() {
                let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
                guard let option = parts.first, ["--options", "--isolation"].contains(option) else {
                    throw UsageFault("unknown argument \(word)")
                }
                guard let value = parts.count == 2 ? parts[1] : words.popFirst() else {
                    throw UsageFault("\(option) wants a value")
                }
                switch (option, value) {
                case ("--options", _): options = value
                case (_, "process"): isChild = true
                case (_, "inline") where !isChild: break
                case (_, "inline"): throw UsageFault("an executable runs in a process of its own")
                default: throw UsageFault("--isolation is inline or process")
                }
            }
        }
    }

    /// Why a command line is not understood.
    private struct UsageFault: Error {
        let message: String

        init(_ message: String) {
            self.message = message
        }
    }
}

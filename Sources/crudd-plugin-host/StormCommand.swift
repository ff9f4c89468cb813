import CRUDPluginHost
import CRUDPluginTesting
import Glibc

/// The process that the conformance suite kills while it writes.
enum StormCommand {
    static let option = "--storm"

    /// What runs this command for the plugin at a path.
    static func program(_ path: String) -> StormProgram {
        StormProgram(path: "/proc/self/exe", arguments: [option, path])
    }

    /// - Parameter words: the plugin's path, options in JSON, format, collection, and the number of the first batch.
    static func run(_ words: [String]) -> Int32 {
        guard words.count == 5, let number = Int(words[4]) else { return 64 }  // EX_USAGE
        do {
            let plugin = ExportedPlugin(try CheckCommand.load(words[0]))
            try Storm.write(plugin, options: words[1], format: words[2], collection: words[3], from: number)
        } catch {
            StandardStream.error.write("crudd-plugin-host: \(error)\n")
            return 70  // EX_SOFTWARE
        }
    }
}

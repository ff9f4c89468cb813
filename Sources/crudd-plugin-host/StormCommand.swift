import CRUDPluginTesting

/// The process that the conformance suite kills while it writes.
enum StormCommand {
    static let option = "--storm"

    /// What runs this command for a plugin.
    static func program(_ plugin: PluginAtPath) -> StormProgram {
        StormProgram(
            path: "/proc/self/exe", arguments: [option, plugin.isChild ? "process" : "inline", plugin.path])
    }

    /// - Parameter words: `inline` or `process`, the plugin's path, options in JSON, format, collection, and the number of
    ///   the first batch.
    static func run(_ words: [String]) -> Int32 {
        guard words.count == 6, let number = Int(words[5]) else { return 64 }  // EX_USAGE
        do {
            let plugin = try PluginAtPath(words[1], isChild: words[0] == "process").start(options: words[2])
            try Storm.write(plugin, options: words[2], format: words[3], collection: words[4], from: number)
        } catch {
            StandardStream.error.write("crudd-plugin-host: \(error)\n")
            return 70  // EX_SOFTWARE
        }
    }
}

/// Why a plugin's file is not loaded: one line for the administrator.
package struct PluginLoadingError: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }
}

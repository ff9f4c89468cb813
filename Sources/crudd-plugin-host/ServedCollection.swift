import CRUDFormats
import CRUDModel
import CRUDPluginCalls

/// A collection that the daemon has opened here.
final class ServedCollection: PluginCollection, Sendable {
    let name: [UInt8]
    let codec: Codec
    let indexPaths: [PropertyPath]
    private let opened: PluginHandle

    init(name: String, format: CollectionRule.Format, indexPaths: [PropertyPath], _ handle: PluginHandle) {
        self.name = Array(name.utf8)
        codec = Codec(format)
        self.indexPaths = indexPaths
        opened = handle
    }

    var handle: OpaquePointer? { opened.pointer }
}

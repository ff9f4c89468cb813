import CRUDWire
import Testing

@testable import CRUDClient

@Suite struct RemoteMethodTests {
    /// The methods of administrators that change something.
    private static let administrativeWrites: Set<Method> = [
        .collectionDrop, .collectionReindex, .sessionClose, .daemonReload, .daemonLogLevel,
        .backendBackup,
    ]

    /// Every method of the protocol is known, and which calls may be sent again.
    @Test(arguments: MethodTable.definitions)
    func knowsWhatAMethodDoes(_ definition: MethodDefinition) {
        let isWrite =
            switch definition.access {
            case .write, .readWrite, .operations: true
            case .everybody, .read, .admin: Self.administrativeWrites.contains(definition.method)
            }
        #expect(RemoteMethod(named: definition.name.description).effect == (isWrite ? .writes : .reads))
    }
}

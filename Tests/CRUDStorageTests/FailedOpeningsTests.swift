import CRUDModel
import Testing

@testable import CRUDStorage

@Suite struct FailedOpeningsTests {
    private let key = BackendCollection.Key(name: Array("c".utf8), format: .json)
    private let error = CRUDError(.noSpace, "full")

    @Test func pausesGrowUntilOneSucceeds() {
        var openings = FailedOpenings()
        var now = Duration.seconds(1)
        #expect(openings.error(for: key, at: now) == nil)
        for pause in [100, 200, 400, 800, 1000, 1000] {
            openings.note(error, for: key, at: now)
            #expect(openings.error(for: key, at: now + .milliseconds(pause - 1))?.code == .noSpace)
            now += .milliseconds(pause)
            #expect(openings.error(for: key, at: now) == nil)
        }
        openings.forget(key)
        openings.note(error, for: key, at: now)
        #expect(openings.error(for: key, at: now + .milliseconds(100)) == nil)
    }

    @Test func collectionsAreApart() {
        var openings = FailedOpenings()
        openings.note(error, for: key, at: .zero)
        let other = BackendCollection.Key(name: Array("c".utf8), format: .plist)
        #expect(openings.error(for: other, at: .zero) == nil)
    }
}

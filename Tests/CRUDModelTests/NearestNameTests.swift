import CRUDModel
import Testing

@Suite struct NearestNameTests {
    private let known = ["path", "synchronous", "backends", "format", "loops", "x"]

    @Test(arguments: [
        ("path", "path"), ("pth", "path"), ("paht", "path"), ("pathes", "path"), ("Path", "path"),
        ("synchronus", "synchronous"), ("bakends", "backends"), ("formt", "format"), ("lops", "loops"), ("xy", "x"),
    ])
    func findsAMisspeltName(name: String, expected: String) {
        #expect(nearestName(to: name.utf8, among: known) == expected)
    }

    @Test(arguments: ["", "durability", "zzzz", "y", "httaps"])
    func findsNothingFarAway(name: String) {
        #expect(nearestName(to: name.utf8, among: known) == nil)
    }

    @Test func returnsTheFirstOfSeveral() {
        #expect(nearestName(to: "bat".utf8, among: ["cat", "hat"]) == "cat")
        #expect(nearestName(to: "hat".utf8, among: ["cat", "hat"]) == "hat")
        #expect(nearestName(to: "hat".utf8, among: []) == nil)
    }

    @Test func comparesOnlyShortNamesAndTheFirstCandidates() {
        let long = String(repeating: "a", count: 65)
        #expect(nearestName(to: long.utf8, among: [long]) == nil)
        let candidates = (0..<64).map { "candidate-number-\($0)" }
        #expect(nearestName(to: "path".utf8, among: candidates + ["path"]) == nil)
    }
}

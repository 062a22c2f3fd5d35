# frozen_string_literal: true

require "test_helper"
require "pando/doctor"
require "pando/config"
require "tmpdir"

# How the doctor's findings are put in order, judged and written.
class DoctorReportTest < Minitest::Test
  Doctor = Pando::Doctor
  Finding = Pando::ForkSafety::Finding
  HOSTILE = "<script>alert('&\"')</script>\e[31m"

  def setup
    @folder = Dir.mktmpdir
    @evidence = Doctor::Evidence.new(@folder)
    @findings = []
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_clean_without_errors_and_warnings
    add(:shared_file)

    assert_predicate(report, :clean?)
    assert_equal({ errors: 0, warnings: 0, notes: 1, known: 0, failing: 0, undone: 0 }, report.summary)
  end

  def test_a_warning_fails_only_where_that_is_wanted
    add(:fork_unsafe)

    assert_predicate(report, :clean?)
    refute_predicate(report.against(Doctor::Baseline.empty, fail_on: "warning"), :clean?)
    assert_match(/^OK: 0 errors, 1 warning, 0 notes$/, report.write("text"))
  end

  def test_a_check_that_could_not_be_done_is_no_pass
    @evidence.could_not("lazy state", "no answer within 140 s")
    @evidence.facts = [{ section: "libraries", findings: [], error: "boom (RuntimeError)" }]

    refute_predicate(report, :complete?)
    assert_equal([["lazy state", "no answer within 140 s"], ["libraries", "boom (RuntimeError)"]],
                 report.undone.map(&:to_a))
    assert_equal("INCOMPLETE: 0 errors, 0 warnings, 0 notes; could not be done: lazy state, libraries",
                 report.write("text").lines.last.chomp)
    assert_equal([{ "check" => "lazy state", "reason" => "no answer within 140 s" }],
                 JSON.parse(report.write("json"))["undone"].first(1))
    assert_match(/"verdict failing">Incomplete: .* Could not be done: lazy state \(no answer/, report.write("html"))
  end

  def test_a_check_of_a_part_of_the_requests_says_so
    @evidence.limited("lazy state", 13, 95)

    assert_includes(report.write("text"), "limited: lazy state was measured with 13 of 95 requests, because it takes")
    assert_includes(report.write("html"), "<p>limited: lazy state was measured with 13 of 95 requests, ")
    assert_equal([["lazy state", 13, 95]], JSON.parse(report.write("json"))["limits"].map(&:values))
    assert_predicate(report, :complete?)
  end

  def test_lines_that_are_no_requests_are_told
    @evidence.unread(Doctor::RequestList.new(["/a", "get /notes", *["/search?q=a b"] * 5]))
    @evidence.unread(Doctor::RequestList.new(["/a"]))

    assert_match(/^limited: 6 of 7 lines are not requests: lines 2, 3, 4, 5, 6 and 1 more$/, report.write("text"))
    assert_equal([{ "check" => "requests", "lines" => 7, "unread" => [2, 3, 4, 5, 6, 7] }],
                 JSON.parse(report.write("json"))["limits"])
    assert_includes(report.write("html"), "<p>limited: 6 of 7 lines are not requests: lines 2, 3, 4, 5, 6 and 1 more<")
    assert_predicate(report, :complete?)
  end

  def test_notes_about_what_gems_do_inside_are_one_line
    add(:lazy_memory, message: "a gem's memo", location: "#{Gem.path.first}/gems/redis-5.0.0/lib/redis.rb:3")
    add(:library_unknown, message: "an unknown gem")
    add(:lazy_memory, message: "a memo of the application's", location: "#{@folder}/a.rb:1")
    add(:shared_socket, message: "a gem's socket", location: "#{Gem.path.first}/gems/redis-5.0.0/lib/redis.rb:9")
    text = report.write("text")

    ["a memo of the application's", "a gem's socket", "2 notes about what gems do inside; --verbose shows them"]
      .each { |words| assert_includes(text, words) }
    verbose = report.write("text", verbose: true)
    ["a gem's memo", "an unknown gem"].each do |words|
      refute_includes(text, words)
      assert_includes(verbose, words)
    end
    refute_includes(verbose, "--verbose")
    assert_equal(4, JSON.parse(report.write("json"))["findings"].size)
    assert_equal(2, report.against(Doctor::Baseline.empty).about_gems.size, "judged by a baseline too")
  end

  def test_many_notes_of_a_kind_are_counted
    6.times { |at| add(:lazy_memory, message: "template #{at}", location: "#{@folder}/#{at}.erb:1") }
    text = report.write("text")

    assert_equal(3, text.scan(/^note: template/).size)
    assert_match(/^3 more notes \[lazy_memory\]; --verbose shows them$/, text)
    assert_match(/^OK: 0 errors, 0 warnings, 6 notes$/, text)
    assert_equal(6, report.write("text", verbose: true).scan(/^note: template/).size)
  end

  def test_the_last_mold_tells_which_libraries_are_loaded
    @evidence.facts = [{ section: "libraries", entries: [{ name: "sqlite3", verdict: "refused" }] },
                       { section: "libraries", entries: [{ name: "sqlite3", verdict: "fine" }] }]

    assert_equal(["fine"], report.libraries.map { |one| one[:verdict] })
  end

  def test_the_gravest_first_and_each_once
    add(:shared_file, location: "#{@folder}/a.rb:1")
    add(:random_copied, location: "#{@folder}/b.rb:2")
    2.times { add(:shared_socket, location: "#{@folder}/c.rb:3") }

    assert_equal(%i[shared_socket random_copied shared_file], report.findings.map(&:kind))
    assert_equal("c.rb:3", report.findings.first.location)
  end

  def test_of_two_findings_on_a_line_the_gravest_stays
    add(:request_failed, severity: :note, location: "#{@folder}/a.rb:1", subject: "GET /a")
    add(:request_failed, location: "#{@folder}/a.rb:1", subject: "GET /b")
    add(:request_failed, location: "#{@folder}/a.rb:1", subject: "GET /c")

    refute_predicate(report, :clean?)
    assert_equal([[:error, "GET /b"]], report.findings.map { |one| [one.severity, one.subject] })
  end

  def test_a_warning_without_a_line_gives_way_to_one_of_its_kind_with_it
    add(:native_thread, location: "#{@folder}/a.rb:1")
    add(:native_thread)

    assert_equal(["a.rb:1"], report.findings.map(&:location))
  end

  def test_a_gems_line_is_the_same_on_each_machine
    add(:shared_socket, location: "#{Gem.path.first}/gems/redis-5.0.0/lib/redis.rb:3")

    assert_equal("redis-5.0.0/lib/redis.rb:3", report.findings.first.location)
  end

  def test_what_the_baseline_knows_does_not_fail
    add(:shared_socket, location: "#{@folder}/a.rb:1")
    known = File.join(@folder, "baseline.json")
    Doctor::Baseline.write(known, report.findings)
    @findings.clear
    add(:shared_socket, location: "#{@folder}/a.rb:77")
    judged = report.against(Doctor::Baseline.read(known))

    assert_predicate(judged, :clean?)
    assert_equal([1, 0], judged.summary.values_at(:known, :failing))
    add(:shared_socket, location: "#{@folder}/b.rb:1")
    refute_predicate(report.against(Doctor::Baseline.read(known)), :clean?)
  end

  def test_a_baseline_that_is_none_is_wrong_usage
    path = File.join(@folder, "baseline.json")
    ["{", "[]", '{"schema":2,"findings":[]}', '{"schema":1,"findings":{}}'].each do |text|
      File.write(path, text)
      assert_raises(Pando::UsageError, text) { Doctor::Baseline.read(path) }
    end
    assert_raises(Pando::UsageError) { Doctor::Baseline.read("#{path}.none") }
  end

  def test_json_has_every_field
    add(:shared_socket, location: "#{@folder}/a.rb:1")
    known = JSON.parse(report.write("json"))

    assert_equal(%w[schema pando application seconds requests statuses generations summary findings memory descriptors
                    threads libraries features lazy_state undone limits], known.keys)
    assert_equal(%w[kind severity subject location message advice details fingerprint known],
                 known["findings"].first.keys)
    assert_equal(["GET /"], known["requests"])
  end

  def test_responses_that_are_no_2xx_are_told
    answers = [302, 200].map { |status| Doctor::Conversation::Answer.new(status: status) }
    answers.each_with_index do |answer, at|
      request = Doctor::Request.new(verb: "GET", target: "/#{at}", headers: {}, body: nil)
      @evidence.sent << Doctor::Evidence::Sent.new(request: request, generation: 0, slot: 0, answer: answer)
    end

    assert_match(/^responses: 1 of 2 requests was redirected$/, report.write("text"))
    assert_includes(report.write("html"), "<p>responses: 1 of 2 requests was redirected</p>")
    assert_equal({ "200" => 1, "302" => 1 }, JSON.parse(report.write("json"))["statuses"])
  end

  def test_what_came_of_what_kernel_and_ruby_can_do
    facts = [{ features: { kcmp: true } }, { snapshot: "served", code_region: [1_048_576, 50_331_648] },
             { snapshot: "served", code_region: [47 * 1_048_576, 50_331_648] }]
    @evidence.facts = facts
    text = report.write("text")

    ["kcmp: yes\n", "yjit code: 47.0 MiB of 48.0 MiB",
     "--yjit-exec-mem-size=96\n"].each { |line| assert_includes(text, line) }
  end

  def test_text_has_no_control_characters_of_others
    add(:shared_socket, message: HOSTILE)

    assert_includes(report.write("text"), "error: <script>")
    refute_includes(report.write("text"), "\e")
  end

  def test_the_page_is_self_contained_and_escaped
    add(:shared_socket, message: HOSTILE, subject: HOSTILE, location: HOSTILE, advice: HOSTILE)
    @evidence.facts = [{ snapshot: "fork", role: HOSTILE, generation: 0, natives: [HOSTILE],
                         threads: [{ name: HOSTILE, location: HOSTILE }] }, { features: { kernel: HOSTILE } },
                       { section: "libraries", findings: [], entries: [{ name: HOSTILE, note: HOSTILE }] }]
    @evidence.memory << Doctor::Evidence::Memory.new(moment: HOSTILE, title: HOSTILE, pid: 1, rss: 3, pss: 2, uss: 1)
    page = report(Doctor::Request.new(verb: "GET", target: "/#{HOSTILE}", headers: {}, body: nil)).write("html")

    refute_match(/<script|<img|<link|src=|href=|url\(|@import/i, page)
    assert_operator(page.scan("&lt;script&gt;").size, :>=, 9)
    assert_match(%r{\A<!DOCTYPE html>.*<svg .*</html>\n\z}m, page)
  end

  def test_the_page_tells_which_processes_have_a_descriptor
    workers = [0, 1].map { |slot| Doctor::Stage::Actor.new("worker", slot, 0, 7 + slot) }
    open = Doctor::ProcessInfo::Descriptor.new(9, "/tmp/<words>", {})
    shared = Doctor::SharedDescriptors::Shared.new(open: open, io: { location: "#{@folder}/a.rb:3" }, holders: workers)
    mold = Doctor::Stage::Actor.new("mold", nil, 0, 6)
    @evidence.generations << Doctor::Evidence::Generation.new(number: 0, mold: mold, workers: workers, shared: [shared])

    assert_includes(report.write("html"), "<tr><td>/tmp/&lt;words&gt;</td><td><code>a.rb:3</code></td>" \
                                          "<td>worker 0 gen 0, worker 1 gen 0</td></tr>")
  end

  private

  def add(kind, message: "it is so", subject: "it", **more)
    @findings << Finding.new(kind, subject: subject, message: message, **more)
  end

  def report(request = Doctor::Request.root)
    Doctor::Report.new(@evidence, Pando::Config.load([], dir: @folder), @findings, [request], 1.0)
  end
end

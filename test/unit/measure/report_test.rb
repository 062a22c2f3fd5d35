# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/config"
require "pando/measure"

# How a measurement is written down.
class MeasureReportTest < Minitest::Test
  Measure = Pando::Measure
  Reading = Measure::ProcessTree::Reading
  MIB = 1 << 20

  # Stands for a server.
  Subject = Struct.new(:name, :facts)

  PUMA = { version: "8.0.2", config: "config/puma.rb", workers: 4, threads: [3, 3], preloaded: true, allocator: nil,
           left_out: ["plugin :solid_queue"] }.freeze
  PANDO = { version: "0.1.0", config: nil, workers: 4, threads: [1, 1], preloaded: true, allocator: "jemalloc",
            refork: ":auto", scale: "10", left_out: [], reforks: 3, discarded: 0 }.freeze

  def test_text
    text = report("text")

    assert_includes(text, "shop in the production environment: Puma and Pando, 4 workers each")
    assert_match(/^  Puma 8.0.2: config.puma.rb, 3 threads a worker, preloaded$/, text)
    assert_match(/^memory on average, MiB +900 +450 +0.50$/, text)
    assert_match(/^CPU time a request, ms +20.0 +18.0 +0.90$/, text)
    assert_match(/^16 +3,300 +1,350 +0.41 +1,950$/, text)
    assert_match(/^Computed from the 4 workers that were measured/, text)
    assert_match(%r{^  GET /gone: answered with status 404$}, text)
    assert_match(/^- Puma ran without plugin :solid_queue\.$/, text)
    assert_match(/^Pando took 0.50 of Puma's memory and 0.90 of its CPU time\.$/, text)
    assert_operator(text.lines.map(&:size).max, :<=, 112)
  end

  def test_the_jits_of_the_servers_are_named
    text = report("text", jits: [nil, "YJIT"])

    assert_match(/4 workers each, ruby #{RUBY_VERSION}$/, text)
    assert_match(/^  Pando 0.1.0: no config file, 1 thread a worker, preloaded, jemalloc, YJIT, refork :auto$/, text)
    assert_match(/^- Puma ran without a JIT, Pando ran with YJIT\. .*RUBY_YJIT_ENABLE=1\s/, text)
    refute_match(/ran with YJIT|without a JIT/, report("text", jits: %w[YJIT YJIT]))
    refute_includes(report("text"), "JIT")
  end

  def test_json
    report = JSON.parse(report("json"))

    assert_equal([1, "shop", 4, { "memory" => 0.5, "final" => 0.5, "cpu" => 0.9 }],
                 [report["schema"], report["application"], report["workers"],
                  report["ratio"].transform_values { |ratio| ratio.round(3) }])
    assert_equal([900 * MIB, 3300 * MIB],
                 [report.dig("servers", "puma", "memory", "average"),
                  report.dig("servers", "puma", "memory", "workers", "16", "average")])
    assert_equal({ "status 500" => 1 }, report.dig("servers", "pando", "errors"))
    assert_equal([1000.0], report.dig("servers", "pando", "slices").map { |slice| slice["requests"] })
  end

  def test_html
    html = report("html")

    assert_includes(html, "<p class=\"verdict\">Pando took 0.50 of Puma&#39;s memory and 0.90 of its CPU time.</p>")
    assert_includes(html, "<td>memory on average, MiB</td><td>900</td><td>450</td><td>0.50</td>")
    assert_includes(html, "<td>16</td><td>3,300</td><td>1,350</td><td>0.41</td><td>1,950</td>")
    assert_includes(html, "<li>GET /gone: answered with status 404</li>")
    assert_includes(html, "<li>Puma ran without plugin :solid_queue.</li>")
    refute_match(/<script|href=|src=/, html)
    %w[svg table section ul].each { |tag| assert_equal(html.scan(/<#{tag}\b/).size, html.scan("</#{tag}>").size, tag) }
  end

  # 1,000 MiB are 290 pixels high, 1,000 requests 700 wide.
  def test_html_draws_the_memory_of_each_server
    html = report("html")

    assert_includes(html, "<g class=\"puma\"><polyline points=\"70.0,49.0 770.0,49.0\"/>")
    assert_includes(html, "<g class=\"pando\"><polyline points=\"70.0,179.5 770.0,179.5\"/>")
    assert_equal(%w[0 200 400 600 800 1000] * 2, html.scan(%r{>(\d+)</text>}).flatten)
  end

  def test_html_of_equal_servers_and_of_one_request
    html = report("html", pando: 900, plan: { requests: 1 }, done: 1.0)

    assert_equal(%w[53.0 67.0], %w[Puma Pando].map { |name| html[/y="(\S+)">#{name}</, 1] })
    assert_equal(%w[0 1], html.scan(%r{y="330" text-anchor="middle">(\d+)</text>}).flatten)
  end

  def test_html_escapes_what_an_application_says
    html = report("html", left: { "answered with status 404" => ["GET /<script>alert(1)</script>"] })

    assert_includes(html, "GET /&lt;script&gt;")
    refute_includes(html, "<script>")
  end

  def test_pando_alone
    text = report("text", alone: true)

    assert_includes(text, "Puma is not in the bundle, so Pando is measured alone")
    refute_match(/Pando took|Pando.Puma|both/, text)
    assert_match(/^16 +1,350$/, text)
    assert_includes(report("html", alone: true), "<p class=\"verdict\">Pando alone.</p>")
    assert_equal(1, report("html", alone: true).scan("<polyline").size)
  end

  # A single worker has all that others would share for itself, if only because Puma does not preload for one.
  def test_one_worker_does_not_tell_what_more_would_take
    text = report("text", workers: 1)

    assert_match(/^memory on average, MiB +900 +450 +0.50$/, text)
    assert_match(/^each further worker, MiB +- +- +-$/, text)
    refute_match(/^16 |^workers would take|Computed from/, text)
    assert_match(/^What more workers would take is not computed: .*Use -w\s2/, text)
    refute_includes(report("html", workers: 1), "<td>16</td>")
    assert_includes(report("html", workers: 1), "What more workers would take is not computed")
    assert_equal([nil, {}],
                 JSON.parse(report("json", workers: 1)).dig("servers", "puma", "memory")
                     .values_at("further_worker", "workers"))
  end

  # CPU time comes in ticks of 10 ms.
  def test_too_little_cpu_time_is_not_compared
    text = report("text", requests: 26)

    assert_match(/^CPU time a request, ms +20.0 +18.0 +-$/, text)
    assert_match(/^- The load took too little CPU time to compare \(0\.52 s on Puma, 0\.47 s on Pando\)/, text)
    assert_match(/^Pando took 0.50 of Puma's memory\.$/, text)
    assert_nil(JSON.parse(report("json", requests: 26)).dig("ratio", "cpu"))
    refute_match(/The load took/, report("text"))
    assert_match(/^- The load took too little CPU time .* \(0\.47 s on Pando\)/,
                 report("text", requests: 26, alone: true))
  end

  def test_one_of_a_kind
    text = report("text", plan: { requests: 1 }, redirected: 1)

    assert_match(/^  1 request for each worker, 4 clients/, text)
    assert_match(/^- Requests of 1 kind show little of an application\. .*--log FILE/, text)
    assert_match(/^- Each worker got only 1 request\. Memory grows for thousands .*: use --requests N\.$/, text)
    assert_match(/^- The application redirects 1 of 1 kind of requests, perhaps to a login/, text)
    assert_match(/^  1,000 requests for each worker/, report("text"))
  end

  def test_a_broken_application_has_no_verdict
    text = report("text", broken: "Half of it is broken.")

    refute_match(/Pando took/, text)
    assert_equal("- Half of it is broken.", text.lines(chomp: true).grep(/^- /).first)
    assert_includes(report("html", broken: "Half of it is broken."), "<p class=\"verdict\">Half of it is broken.</p>")
    refute_match(/Pando took/, report("html", broken: "Half of it is broken."))
  end

  private

  def report(format, alone: false, workers: 4, broken: nil, requests: 40, redirected: 0, plan: {}, pando: 450,
             done: 1000.0, left: { "answered with status 404" => ["GET /gone"] }, jits: [])
    puma_facts, pando_facts = [PUMA, PANDO].zip(jits).map { |facts, jit| { **facts, jit: jit } }
    sides = [(side("Puma", puma_facts, 900, 200, 0.02, requests, workers, done) unless alone),
             side("Pando", pando_facts, pando, 75, 0.018, requests, workers, done, "status 500")]
    contest = Struct.new(:sides, :cut_short).new(sides.compact, nil)
    Measure::Report.write(result(contest, left, broken, redirected, workers: workers, **plan), format)
  end

  def result(contest, left, broken, redirected, **plan)
    config = Struct.new(:directory, :environment).new("/srv/shop", "production")
    plan = Measure::Plan.new(requests: 1000, clients: 4, headers: {}, against: :puma, **plan)
    selection = Measure::Selection.new([request], "a log", left)
    rehearsal = Struct.new(:selection, :redirected, :broken) { def tls? = false }.new(selection, redirected, broken)
    Measure::Result.new(config, plan, rehearsal, contest)
  end

  def side(name, facts, pss, own, cpu, requests, workers, done, trouble = nil)
    answers = Array.new(requests) { |number| answer(0.01 * (number + 1), trouble && number.zero? ? trouble : nil) }
    readings = [[0.0, reading(pss, own, 1.0)], [done, reading(pss, own, 1.0 + (cpu * requests))]]
    Measure::Side.new(Subject.new(name, facts), workers, readings, [answers])
  end

  def reading(pss, own, cpu)
    Reading.new(pss: pss * MIB, own: (own * MIB).to_f, workers: 4, processes: 7, cpu: cpu)
  end

  def answer(seconds, trouble)
    Measure::Client::Answer.new(request: request, seconds: seconds, status: trouble ? 500 : 200, trouble: trouble)
  end

  def request = @request ||= Pando::Doctor::RequestLine.new("/").request
end

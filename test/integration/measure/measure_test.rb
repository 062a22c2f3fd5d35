# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "tmpdir"
require "support/app_files"
require "support/checkout"
require "support/proc_tree"
require "support/rails_app"
require "support/waiting"

# `pando measure` as a user runs it, of a small application with Puma in its bundle.
class MeasureTest < Minitest::Test
  include Support::AppFiles
  include Support::Waiting

  # A worker that has answered keeps 4 MiB of what Puma's workers each have for themselves.
  APP = <<~RUBY
    KEPT = []
    run lambda { |env|
      KEPT << ("x" * (4 << 20)) if KEPT.empty?
      File.write("seen", "\#{env["REQUEST_METHOD"]} \#{env["PATH_INFO"]} \#{env["HTTP_COOKIE"]}\\n", mode: "a")
      case env["PATH_INFO"]
      when "/gone" then [404, {}, []]
      when "/tls" then env["HTTP_X_FORWARDED_PROTO"] ? [200, {}, ["a"]] : [301, { "location" => "https://x/tls" }, []]
      else [200, { "content-type" => "text/plain" }, ["hello"]]
      end
    }
  RUBY
  GEMFILE = <<~RUBY.freeze
    source "https://rubygems.org"
    gem "puma"
    gem "rack"
    gem "pando", path: #{Support::Checkout::ROOT.dump}
  RUBY
  LIMIT = 120 # seconds

  class << self
    # @return [String] folder of the application
    def prepared
      @prepared ||= Dir.mktmpdir("pando measure").tap do |folder|
        Minitest.after_run { FileUtils.rm_rf(folder) }
        { "config.ru" => APP, "Gemfile" => GEMFILE }.each { |name, text| File.write(File.join(folder, name), text) }
        Support::RailsApp.install_gems(folder)
      end
    end
  end

  def setup
    @folder = Dir.mktmpdir("pando measured")
    begin
      FileUtils.cp_r("#{self.class.prepared}/.", @folder)
    rescue Support::RailsApp::Failed => e
      skip "the gems cannot be installed: #{e.message.lines.first}"
    end
    write("config/puma.rb", "threads 2, 3\nport 9292\npidfile 'puma.pid'\nactivate_control_app 'unix://control'\n" \
                            "stdout_redirect 'puma.log'\n")
    write("config/pando.rb", "listen 9292\npidfile 'pando.pid'\nmemory worker: 512.mb\nthreads 4\njit true\n" \
                             "service(:clock) { |service| service.wait(60) }\n")
    write("requests", "/a\n/tls\n/gone\nPOST /b\n")
  end

  def teardown
    Support::ProcTree.in_folder(@folder).each { |entry| Process.kill(:KILL, entry.pid) }
    FileUtils.rm_rf(@folder)
  end

  def test_both_servers
    out, err, status = measure("--routes", "requests", "--requests", "30", "-w", "2", "--format", "json",
                               "--header", "Cookie: a=b")
    assert_equal(0, status, err)
    report = JSON.parse(out)
    puma, pando = report["servers"].values_at("puma", "pando")

    assert_equal(["production", 2, 30], report.values_at("environment", "workers", "requests"))
    assert_equal([[60, {}]] * 2, [puma, pando].map { |one| one.values_at("requests", "errors") })
    assert_equal({ "only GET and HEAD are sent without --writes" => ["POST /b"],
                   "answered with status 404" => ["GET /gone"] }, report["left_out"])
    assert_equal(["config/puma.rb", [2, 3], 2], puma["facts"].values_at("config", "threads", "workers"))
    assert_equal(["config/pando.rb", [4, 4], ["service :clock"]],
                 pando["facts"].values_at("config", "threads", "left_out"))
    assert_predicate(puma["cpu"] + pando["cpu"], :positive?)
    assert_includes(report["notes"].join("\n"), "Each request has the header X-Forwarded-Proto: https")
    refute_includes(report["notes"].join("\n"), "perhaps to a login")
    check_jit(puma, pando, report["notes"].join("\n"))
    check_memory(puma["memory"])
    check_memory(pando["memory"])
    check_harmless
  end

  def test_puma_is_not_in_the_bundle
    write("Gemfile", GEMFILE.sub(/^gem "puma"\n/, ""))
    out, err, status = measure("--requests", "20", "-w", "1")

    assert_equal(0, status, err)
    assert_match(/^- Puma is not in the bundle, so Pando is measured alone/, out)
    assert_match(/^failed requests +0$/, out)
  end

  def test_an_application_that_does_not_boot
    write("config.ru", "raise ArgumentError, 'Missing `secret_key_base` for \\'production\\' environment'")
    out, err, status = measure

    assert_equal([2, ""], [status, out])
    assert_match(/^pando: nothing was measured: Puma: the server ended before it was ready$/, err)
    assert_match(/no secret_key_base in the production environment.*SECRET_KEY_BASE_DUMMY=1/, err)
    assert_nothing_left
  end

  def test_nothing_is_answered_well
    write("requests", "/gone\n")
    _, err, status = measure("--routes", "requests")

    assert_equal(2, status)
    assert_match(/no request is left that both answer without an error: GET .gone: answered with status 404/, err)
    assert_nothing_left
  end

  def test_an_interrupt_ends_both_servers
    { INT: 130, TERM: nil }.each do |signal, code|
      status = interrupted { |pid| Process.kill(signal, pid) }

      code ? assert_equal(code, status.exitstatus) : assert_equal(Signal.list["TERM"], status.termsig)
      assert_nothing_left
    end
  end

  # Which it cannot do anything about itself.
  def test_a_kill_ends_both_servers
    interrupted { |pid| Process.kill(:KILL, pid) }

    wait_until(message: -> { left.inspect }) { left.empty? }
  end

  private

  # The config file of one of them enables it.
  def check_jit(puma, pando, notes)
    return unless defined?(RubyVM::YJIT.enable)

    assert_equal([nil, "YJIT"], [puma, pando].map { |one| one["facts"]["jit"] })
    assert_includes(notes, "Puma ran without a JIT, Pando ran with YJIT.")
  end

  def command(*arguments) = ["timeout", LIMIT.to_s, "bundle", "exec", "pando", "measure", *arguments]

  def measure(*arguments)
    out, err, status = Open3.capture3(environment, *command(*arguments), chdir: @folder, stdin_data: "")
    [out, err, status.exitstatus]
  end

  def environment
    FileUtils.mkdir_p(temporary = File.join(@folder, "tmp"))
    Support::RailsApp.environment.merge("TMPDIR" => temporary, "RUBY_YJIT_ENABLE" => nil)
  end

  # Under load, that is when both are up.
  def interrupted
    reader, writer = IO.pipe
    pid = Process.spawn(environment, *command("--requests", "10000").drop(2), chdir: @folder, in: File::NULL,
                                                                              out: File::NULL, err: writer)
    writer.close
    said = +""
    said << (reader.gets || flunk(said)) until said.include?("loading: ")
    assert_equal(%w[pando puma], left.filter_map { |entry| entry.title[/\A(?:puma|pando)\b/] }.uniq.sort)
    yield pid
    Process.wait2(pid).last
  ensure
    reader&.close
  end

  def left = Support::ProcTree.in_folder(@folder)

  def assert_nothing_left
    assert_empty(left.map(&:title))
    assert_empty(Dir.children(File.join(@folder, "tmp")))
  end

  # Two workers share most of a small application.
  def check_memory(memory)
    sizes = memory["workers"].values.map { |size| size["average"] }

    assert_equal(sizes.sort, sizes)
    assert_in_delta(8 * memory["further_worker"], sizes[2] - sizes[1], 16)
    assert_includes((2 << 20)..(60 << 20), memory["further_worker"])
    assert_operator(memory["average"], :>, 10 << 20)
  end

  # It has bound nothing of the user's, written nothing over, and sent no more than was asked for.
  def check_harmless
    assert_nothing_left
    %w[puma.pid pando.pid control puma.log].each { |name| refute_path_exists(File.join(@folder, name)) }
    seen = File.readlines(File.join(@folder, "seen"), chomp: true)
    assert_equal(%w[/a /gone /tls], seen.map { |line| line.split[1] }.uniq.sort)
    assert_equal([%w[GET a=b]], seen.map { |line| line.split.values_at(0, 2) }.uniq)
  end
end

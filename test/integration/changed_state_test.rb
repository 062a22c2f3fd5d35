# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "support/servers"

# Promise: what one request has changed in its process does not become the whole cluster's by a refork; an event says
# what it was, and reforking goes on.
class ChangedStateTest < Minitest::Test
  include Support::Servers

  PANDO = File.expand_path("../../exe/pando", __dir__)
  # A request to /NAME makes the change, one to /state tells how it is here.
  APP = <<~'RUBY'
    require "etc"
    require "json"
    CHANGES = {
      "umask" => -> { File.umask(0o777) },
      "directory" => -> { Dir.chdir("/") },
      "nice" => -> { Process.setpriority(Process::PRIO_PROCESS, 0, 19) },
      "signal PIPE" => -> { trap("PIPE", "IGNORE") },
      "signal WINCH" => -> { trap("WINCH") { nil } },
      "limit core file size" => -> { Process.setrlimit(:CORE, 4096, Process.getrlimit(:CORE).last) },
      "stderr" => -> { $stderr.reopen(File::NULL) },
      "close stdout" => -> { $stdout.close },
      "close stderr" => -> { $stderr.close },
      "failure" => -> { raise "told on stderr" },
      "stdin" => -> { $stdin.reopen("/dev/zero") },
      "env CHANGED" => -> { ENV["CHANGED"] = "a secret" },
      "user ids" => -> { Process::Sys.setreuid(1_234_567, 0) },
      "group ids" => -> { Process::Sys.setregid(1_234_567, 0) },
      "groups" => -> { Process.groups = [1_234_567] },
      "root" => -> { Dir.chroot(Dir.pwd) }
    }
    module HELD
      def self.wait(name)
        File.write("#{name}.begun", "")
        hold_until("#{name}.over")
      end
    end
    SEEN = -> {
      limit = File.read("/proc/self/limits")[/^Max core file size +(\S+)/, 1]
      status = File.read("/proc/self/status")
      { "umask" => status[/^Umask:\s*(.*)/, 1], "directory" => Dir.pwd, "nice" => Process.getpriority(0, 0),
        "signals" => status.scan(/^Sig(?:Ign|Cgt):.*/), "limit" => limit, "ids" => status.scan(/^(?:Uid|Gid|Groups):.*/),
        "streams" => [0, 1, 2].map { |fd| File.readlink("/proc/self/fd/#{fd}") rescue nil },
        "changed" => ENV.key?("CHANGED"), "root" => File.stat("/proc/self/root").ino, "pid" => Process.pid }
    }
    run lambda { |env|
      name = env["PATH_INFO"][1..].tr("_", " ")
      case name
      when "state" then next [200, {}, [SEEN.call.to_json]]
      when "hold" then HELD.wait(env["QUERY_STRING"])
      else CHANGES.fetch(name).call
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY
  NEED_ROOT = ["user ids", "group ids", "groups", "root"].freeze
  REFUSED = ["nice", "signal PIPE", "limit core file size", "stdin", "stderr", "env CHANGED", "signal WINCH",
             *NEED_ROOT].freeze
  CUSTOMARY = ["env CHANGED", "signal WINCH"].freeze
  WORDS = "The app changed its process while it served requests: "

  def test_directory_and_umask_are_put_back
    server = start("workers 2")
    before = state(server)
    pid = change(server, "umask", "directory")
    refork(server)
    told = findings(server).sort_by { |one| one["subject"] }

    assert_equal(before, state(server))
    assert_equal(["directory #{server.folder} -> /", "umask 0022 -> 0777"].map { |text| WORDS + text },
                 told.map { |one| one["reason"] })
    assert_equal([[pid, "warning", "put back", 0]] * 2,
                 told.map { |one| one.values_at("pid", "severity", "action", "generation") })
    assert_empty(server.events("source.changed"))
  end

  REFUSED.each do |name|
    define_method(:"test_a_worker_with_another_#{name.tr(" ", "_")}_is_not_promoted_and_another_one_is") do
      skip("only root can do that") if NEED_ROOT.include?(name) && !Process.uid.zero?
      server = start("workers 2")
      before = state(server)
      pid = change(server, name)
      refork(server)
      moved = server.events("source.changed").first
      found = findings(server).find { |one| one["subject"] == name }

      assert_match(/\Athe worker in slot \d must not be forked: #{WORDS}/, moved["reason"])
      refute_equal(pid, moved["source"])
      assert_equal([pid, CUSTOMARY.include?(name) ? "warning" : "error", "refused"],
                   found.values_at("pid", "severity", "action"))
      refute_match(/a secret/, server.output)
      assert_equal([before], states(server))
    end
  end

  def test_where_no_other_worker_is_left_the_refork_is_refused_and_the_worker_replaced
    server = start("workers 2")
    before = state(server)
    change(server, "nice")
    wait_until { server.get("/nice") && states(server).all? { |one| one["nice"] == 19 } }
    _, errors, code = pando(server, "refork")
    words = "#{WORDS}nice \\d+ -> 19\\. "

    assert_match(/^pando: refused: the worker that .* \(slot \d\) must not be forked: #{words}/, errors)
    assert_equal(1, code)
    assert_equal(["finding.reported"], server.complaints.map { |event| event["event"] }, "it is one alarm")
    assert_match(/^no refork from worker \d: #{words}.*fork_safety state: { allow: \["nice"\] }\.$/,
                 pando(server, "status").first)
    leaving = server.wait_past("worker.leaving")

    assert_match(/\Arequests have changed its process/, leaving["reason"])
    refork(server)
    assert_equal([before], states(server))
  end

  # Ruby flushes both before a fork.
  %w[stdout stderr].each do |name|
    define_method(:"test_a_worker_with_a_closed_#{name}_is_replaced_and_still_tells_its_events") do
      server = start("workers 1")
      pid = Integer(server.get("/close_#{name}").body)
      failed = server.wait_for("request.failed") { assert_equal(500, server.get("/failure").status) }
      _, errors, code = pando(server, "refork")

      assert_match(/#{WORDS}#{name} .* -> closed\. /, errors)
      assert_equal([1, pid], [code, failed["pid"]])
      assert_equal([name], findings(server).map { |one| one["subject"] })
      assert_equal(pid, server.wait_past("worker.leaving")["pid"])
      refork(server)
      assert_empty(server.events("refork.suspended"))
    end
  end

  def test_one_worker_is_replaced_as_well
    server = start("workers 1")
    before = state(server)
    server.get("/nice")
    server.wait_for("worker.ready") { pando(server, "refork") }
    _, _, code = pando(server, "refork")

    assert_equal(0, code)
    assert_equal(before, state(server))
  end

  LAZY = APP.sub("run lambda { |env|", <<~RUBY)
    run lambda { |env|
      ENV["LAZY"] ||= "1"
      $trapped ||= trap("WINCH") { nil }
  RUBY

  def test_what_each_worker_changes_by_itself_is_handed_down_from_the_second_one
    server = start("workers 2", app: LAZY)
    both_serve(server)
    refork(server)
    told = findings(server)

    assert_equal({ "refused" => ["env LAZY", "signal WINCH"], nil => ["env LAZY", "signal WINCH"] },
                 told.group_by { |one| one["action"] }.transform_values { |all| all.map { |one| one["subject"] }.sort })
    assert_equal(%w[warning], told.map { |one| one["severity"] }.uniq)
    assert_equal(2, told.map { |one| one["pid"] }.uniq.size)
    2.times { both_serve(server) || refork(server) }
    assert_equal(told, findings(server), "the next generations have it from the start")
  end

  def test_one_worker_alone_is_replaced_once
    server = start("workers 1", app: LAZY)
    state(server)
    server.wait_for("worker.ready") { assert_equal(1, pando(server, "refork").last) }
    state(server)
    2.times { assert_equal(0, pando(server, "refork").last) || state(server) }

    assert_equal(4, findings(server).size)
  end

  HOOKS = <<~'RUBY'
    before_fork { ENV["FORKS"] = "#{ENV["FORKS"]}." }
    after_mold_fork { File.umask(0o027) }
    after_worker_fork do |_, worker|
      ENV["WORKER"] = worker.slot.to_s
      Dir.chdir("/tmp")
      File.umask(0o077)
      trap("ALRM", "IGNORE")
      Process.setrlimit(:CORE, worker.slot, Process.getrlimit(:CORE).last)
    end
  RUBY

  def test_what_hooks_change_is_no_finding
    server = start("workers 2\n#{HOOKS}")
    3.times { both_serve(server) || refork(server) }

    assert_empty(findings(server))
    assert_empty(server.events("source.changed"))
    assert_equal(["0077", "/tmp"], state(server).values_at("umask", "directory"))
  end

  def test_a_directory_that_is_gone_cannot_be_put_back
    server = start("workers 1\nafter_worker_fork { Dir.mkdir(\"gone\") ; Dir.chdir(\"gone\") }")
    server.get("/directory")
    Dir.rmdir("#{server.folder}/gone")
    _, errors, code = pando(server, "refork")

    assert_equal(1, code)
    assert_match(%r{#{WORDS}directory #{server.folder}/gone -> /\. }, errors)
  end

  def test_the_mold_s_death_does_not_bring_it_about_either
    server = start("workers 1")
    before = state(server)
    server.get("/nice")
    server.wait_for("generation.current") { Process.kill("KILL", server.mold.pid) }

    assert_equal(["refused"], findings(server).map { |one| one["action"] })
    assert(wait_until { states(server) == [before] }, "a mold that booted from cold replaces the worker")
  end

  def test_it_can_be_allowed_by_its_name_or_altogether
    ["{ allow: [\"umask\", \"limit\"] }", ":allow"].each do |policy|
      server = start("workers 1\nfork_safety state: #{policy}")
      %w[umask limit_core_file_size].each { |name| server.get("/#{name}") }
      refork(server)

      assert_empty(findings(server), policy)
      assert_equal(%w[0777 4096], state(server).values_at("umask", "limit"))
    end
  end

  def test_but_a_closed_stream_prevents_the_fork_all_the_same
    server = start("workers 1\nfork_safety state: :allow")
    server.get("/close_stderr")
    _, errors, code = pando(server, "refork")

    assert_match(/\$stderr is closed, and Ruby flushes it at each fork\. .*reopen/, errors)
    assert_equal(1, code)
  end

  def test_or_only_be_reported
    server = start("workers 1\nfork_safety state: :report")
    server.get("/nice")
    refork(server)

    assert_equal([["nice", nil]], findings(server).map { |one| one.values_at("subject", "action") })
    assert_equal(19, state(server)["nice"])
  end

  private

  def start(config, app: APP, **options)
    serve(app: app, config: "refork :manual\ncontrol \"p.sock\"\n#{config}", **options)
  end

  # The workers of the last generation have left as well: until then they answer.
  def refork(server) = server.refork && server.wait_for_leavers

  # Until each worker has answered.
  def both_serve(server)
    wait_until { server.workers.size == states(server, "pid").size }
    nil
  end

  # In the worker that has served most, which is asked first; the other one is held meanwhile.
  # @return [Integer] its pid
  def change(server, *names)
    held = Thread.new { server.get("/hold?a") }
    wait_until { File.exist?("#{server.folder}/a.begun") }
    pids = names.map { |name| Integer(server.get("/#{name.tr(" ", "_")}").body) }
    10.times { server.get("/state") }
    pids.first
  ensure
    server.write("a.over", "")
    held.join
  end

  def findings(server) = server.events("finding.reported")
  def state(server) = JSON.parse(server.get("/state").body).except("pid")

  # Of those that answer when many ask at once.
  def states(server, *fields)
    threads = Array.new(8) { Thread.new { JSON.parse(server.get("/state").body) } }
    answers = threads.map(&:value)
    (fields.any? ? answers.map { |one| one.slice(*fields) } : answers.map { |one| one.except("pid") }).uniq
  end

  def pando(server, *words)
    lib = File.expand_path("../../lib", __dir__)
    out, errors, status = Open3.capture3(RbConfig.ruby, "-W0", "-I", lib, PANDO, *words, "-c", "pando.rb",
                                         chdir: server.folder)
    [out, errors, status.exitstatus]
  end
end

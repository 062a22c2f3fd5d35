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
      "nice" => -> { Process.setpriority(Process::PRIO_PROCESS, 0, 7) },
      "signal PIPE" => -> { trap("PIPE", "IGNORE") },
      "signal WINCH" => -> { trap("WINCH") { nil } },
      "limit core file size" => -> { Process.setrlimit(:CORE, 4096, Process.getrlimit(:CORE).last) },
      "stderr" => -> { $stderr.reopen(File::NULL) },
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
        sleep 0.01 until File.exist?("#{name}.over")
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
  WORDS = "The application has changed its process while it served: "

  def test_directory_and_umask_are_put_back
    server = start("workers 2")
    before = state(server)
    pid = change(server, "umask", "directory")
    server.refork
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
      server.refork
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

  private

  def start(config, app: APP, **options)
    serve(app: app, config: "refork :manual\ncontrol \"p.sock\"\n#{config}", **options)
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

  # Of all workers.
  def states(server)
    threads = Array.new(8) { Thread.new { JSON.parse(server.get("/state").body) } }
    threads.map { |thread| thread.value.except("pid") }.uniq
  end
end

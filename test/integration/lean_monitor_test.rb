# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# The monitor decides about others' lives and so keeps its own small: no application, no Rack, no HTTP. The reactor has
# nothing of it, nor of Ruby.
class LeanMonitorTest < Minitest::Test
  include Support::Servers

  REFORKS = 20
  # Measured with YJIT, which takes 5 MiB of it: 22 to 28 MiB on Ruby 3.3, 28 to 31 on 4.0. The app alone has 40 more.
  MOST_PSS_KIB = 35 * 1024
  MOST_REACTOR_PSS_KIB = 3 * 1024 # measured: 0.3 MiB at its start, then 0.6 to 0.9
  NOT_LOADED = %r{/rack(\.rb|/|-\d)|/pando/(http|fork_safety|swarm|admin)(\.rb|/(?!reactor_))}

  # The event is emitted by the monitor alone.
  CONFIG = <<~RUBY
    require "json"
    workers 2
    refork :manual
    admin "unix:admin.sock"
    on("refork.finished") do |_event|
      facts = { pid: Process.pid, features: $LOADED_FEATURES, threads: Thread.list.size,
                constants: %w[Rack AppPart].select { |name| Object.const_defined?(name, false) } }
      File.write("monitor.tmp", JSON.generate(facts))
      File.rename("monitor.tmp", "monitor.json")
    end
  RUBY

  APP = <<~'RUBY'
    require "json"
    module AppPart; BALLAST = Array.new(500_000) { |number| "text #{number}" }; end
    run ->(_env) { [200, {}, [JSON.generate($LOADED_FEATURES + Object.constants)]] }
  RUBY

  def test_neither_app_nor_rack_is_loaded_and_memory_stays_small
    server = serve(app: APP, config: CONFIG)
    REFORKS.times { server.refork }
    facts = JSON.parse(File.read(File.join(server.folder, "monitor.json")))

    assert_equal(server.pid, facts["pid"])
    assert_empty(facts["features"].grep(NOT_LOADED))
    assert_empty(facts["constants"])
    assert_equal(1, facts["threads"])
    assert_operator(server.tree.monitor.pss_kib, :<, MOST_PSS_KIB, File.read("/proc/#{server.pid}/smaps"))
    assert_operator(reactor(server).pss_kib, :<, MOST_REACTOR_PSS_KIB, File.read("/proc/#{reactor(server).pid}/smaps"))
    assert_worker_differs(server)
  end

  private

  def reactor(server) = server.tree.titled("reactor").first

  # Otherwise the pattern would prove nothing.
  def assert_worker_differs(server)
    loaded = JSON.parse(server.get("/").body)
    features = loaded.grep(NOT_LOADED).join("\n")

    %w[/rack pando/http pando/fork_safety].each { |part| assert_includes(features, part) }
    %w[Rack AppPart].each { |name| assert_includes(loaded, name) }
  end
end

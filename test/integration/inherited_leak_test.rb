# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: a leak that each mold inherits and hands down is seen, said, and ended by a boot from cold, and no request
# fails for it.
class InheritedLeakTest < Minitest::Test
  include Support::Servers

  MIB = 1_048_576
  # It keeps a quarter of a mebibyte of each request, and takes three milliseconds of CPU time, as a request does: what
  # a boot from cold costs is little beside that.
  APP = <<~RUBY.freeze
    KEPT = []
    run ->(_env) do
      KEPT << ("x" * #{MIB / 4})
      begun = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - begun > 0.003
      [200, {}, [KEPT.size.to_s]]
    end
  RUBY
  # It is known once a line has served a thousand; that there are two workers makes it twice as many at most.
  REQUESTS_AT_MOST = 6000
  STEP = 100

  def test_the_application_boots_from_cold_and_memory_comes_back
    @server = serve(app: APP, config: <<~RUBY)
      workers 2
      refork after: [#{STEP}]
      rollout canary: { requests: 5, seconds: 0.2, longest: 1 }
    RUBY
    ask until done?("leak.inherited")
    before = pss
    ask until done?("reboot.finished")

    assert_told
    assert_operator pss, :<, before / 2
    assert_equal [200], @statuses.uniq
    assert_empty @server.events("reboot.failed")
    ask until @server.events("refork.finished").last["generation"] > rebooted["generation"] # it goes on as before
  end

  def test_where_only_the_user_reforks_it_is_said
    @server = serve(app: APP, config: "workers 1\nrefork :manual\ncontrol 'control.sock'")
    until done?("leak.inherited")
      STEP.times { ask }
      @server.refork
    end
    told, = @server.events("leak.inherited")

    assert_includes told["advice"], "`pando reload` does it"
    assert_match(/^each request leaks 2[56]\d\.\d KiB that molds hand down: .*; no cold boot: .*pando reload/,
                 status)
    assert_empty @server.events("reboot.started")
    @server.wait_for("reload.finished") { @server.signal("HUP") }
    refute_includes status, "each request leaves"
  end

  private

  def ask = (@statuses ||= []) << @server.get("/").status

  def done?(event)
    assert_operator @statuses.to_a.size, :<, REQUESTS_AT_MOST, "no #{event}"
    @server.events(event).any?
  end

  def pss
    @server.wait_for_leavers
    @server.workers.sum(&:pss_kib)
  end

  def rebooted = @server.events("reboot.finished").first

  def assert_told
    told, = @server.events("leak.inherited")
    assert_equal "warn", told["level"]
    assert_in_delta MIB / 4, told["bytes"], MIB / 20
    assert_equal told["reason"], @server.events("reboot.started").first["reason"]
    assert_operator rebooted["to"], :<, rebooted["from"] / 2
    assert_equal %w[reboot], @server.events("generation.current").map { |one| one["purpose"] } - %w[boot refork]
  end

  def status
    control = File.join(@server.folder, "control.sock")
    IO.popen(Support::Checkout.pando("status", "--control", control), &:read)
  end
end

# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: with `jit :trainee` one worker compiles until the first refork, and all do from then on.
class JitTraineeTest < Minitest::Test
  include Support::Servers

  # A request to /held ends when somebody writes into the FIFO of that name.
  APP = <<~RUBY
    run lambda { |env|
      File.read(File.join(__dir__, env["PATH_INFO"])) if env["PATH_INFO"].start_with?("/held")
      [200, {}, [[Process.pid, RubyVM::YJIT.enabled?].join(" ")]]
    }
  RUBY

  def test_in_one_worker_and_then_in_all
    unless defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)
      skip "Ruby #{RUBY_VERSION} has no YJIT that can be enabled later"
    end
    @server = serve(app: APP, config: "workers 2\njit :trainee\nrefork :manual", env: { "RUBY_YJIT_ENABLE" => nil })
    trainee = @server.wait_past("jit.enabled")["pid"]

    assert_equal(trainee, @server.wait_past("trainee.chosen")["pid"])
    assert_equal({ true => [trainee] }, workers.select { |enabled, _| enabled })
    wait_until(message: "idle workers") { @server.workers.none? { |worker| worker.title.end_with?("busy") } }
    5.times { @server.get("/") }
    @server.refork
    wait_until(message: "two workers") { @server.workers.size == 2 }

    assert_equal trainee, @server.events("refork.started").last["source"]
    assert_equal([[true], 2], workers.then { |found| [found.keys, found.values.flatten.size] })
    assert_equal 1, @server.events("jit.enabled").size
  end

  private

  # Each is made to serve at the same time.
  # @return [Hash{Boolean => Array<Integer>}] the pids of those where it is on, and off
  def workers
    held = %w[held1 held2].each.with_index(1).map do |name, busy|
      File.mkfifo(File.join(@server.folder, name))
      Thread.new { @server.get("/#{name}").body }.tap { @server.wait_until_busy(busy) }
    end
    %w[held1 held2].map { |name| File.join(@server.folder, name) }.each do |path|
      File.write(path, "on")
      File.unlink(path)
    end
    held.map(&:value).group_by { |body| body.end_with?("true") }.transform_values { |all| all.map(&:to_i) }
  end
end

# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: with `jit true` YJIT is on in all workers, before a refork and after it.
class JitTest < Minitest::Test
  include Support::Servers

  # A request to /held ends when somebody writes into the FIFO of that name.
  APP = <<~RUBY
    $booted_with = RubyVM::YJIT.enabled?
    run lambda { |env|
      File.read(File.join(__dir__, env["PATH_INFO"])) if env["PATH_INFO"].start_with?("/held")
      [200, {}, [[Process.pid, $booted_with, RubyVM::YJIT.enabled?].join(" ")]]
    }
  RUBY

  def test_in_all_workers_once_the_application_is_loaded_and_after_a_refork
    unless defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enable)
      skip "Ruby #{RUBY_VERSION} has no YJIT that can be enabled later"
    end
    @server = serve(app: APP, config: "workers 2\njit true\nrefork :manual", env: { "RUBY_YJIT_ENABLE" => nil })
    before = workers
    assert_equal [%w[false true]], before.values.uniq, "off while the application was loaded"
    @server.refork
    wait_until(message: "two workers") { @server.workers.size == 2 }
    after = workers

    assert_equal [%w[false true]], after.values.uniq
    assert_equal [2, 2, 4], [before.size, after.size, (before.keys | after.keys).size]
    assert_empty @server.events("jit.unavailable")
  end

  def test_by_default_ruby_alone_decides
    skip "Ruby #{RUBY_VERSION} has no YJIT" unless defined?(RubyVM::YJIT)
    @server = serve(app: APP, config: "workers 1", env: { "RUBY_YJIT_ENABLE" => nil })

    assert_match(/ false false\z/, @server.get("/").body)
  end

  private

  # Each is made to serve at the same time.
  # @return [Hash{String => Array<String>}] for each pid whether YJIT was on when the application was loaded, and is now
  def workers
    held = %w[held1 held2].each.with_index(1).map do |name, busy|
      File.mkfifo(File.join(@server.folder, name))
      Thread.new { @server.get("/#{name}").body }.tap { @server.wait_until_busy(busy) }
    end
    %w[held1 held2].map { |name| File.join(@server.folder, name) }.each do |path|
      File.write(path, "on")
      File.unlink(path)
    end
    held.to_h { |request| request.value.split.then { |pid, *enabled| [pid, enabled] } }
  end
end

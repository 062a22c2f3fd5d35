# frozen_string_literal: true

require "test_helper"
require "open3"

# nio4r's selectors, seen from a Ruby of its own, where stand-ins are made of the library.
class SelectorsTest < Minitest::Test
  STAND_IN = <<~RUBY
    require "pando/fork_safety"
    require "pando/fork_safety/libraries"
    module NIO
      class Selector
        def initialize(backend = nil)
          @backend = backend
          @lock = Mutex.new
        end

        def close = @lock.synchronize { @closed = true }
        def closed? = @lock.synchronize { !!@closed }
        def select(begun) = @lock.synchronize { begun << true and Queue.new.pop }
      end
    end
    Libraries = Pando::ForkSafety::Libraries
    def forked = Libraries.around_fork(strict: true) { "forked" }
    def safe? = Pando.fork_safe?
  RUBY

  def test_an_open_selector_stands_against_a_fork_until_it_is_closed
    assert_equal <<~TEXT, run_ruby(<<~RUBY)
      true
      false nio4r: a selector is open, and a child would share its epoll set
      nio4r: a selector is open, and a child would share its epoll set (Pando::ForkSafety::Libraries::Unsafe)
      false
      true forked
    TEXT
      2.times { Libraries.watch }
      puts safe?
      one, two = NIO::Selector.new(:epoll), NIO::Selector.new
      puts "\#{safe?} \#{Pando::ForkSafety.reason}"
      begin
        forked
      rescue => e
        puts "\#{e.message} (\#{e.class})"
      end
      one.close
      puts safe?
      two.close
      puts "\#{safe?} \#{forked}"
    RUBY
  end

  # As in development, where Action Cable is loaded by its first connection.
  def test_one_that_was_made_before_anybody_looked
    assert_equal "true\nfalse\ntrue forked\n", run_ruby(<<~RUBY)
      selector = NIO::Selector.new
      puts safe?
      begin
        forked
      rescue Libraries::Unsafe
        puts safe?
      end
      selector.close
      puts "\#{safe?} \#{forked}"
    RUBY
  end

  # It answers nobody meanwhile. Each thread would wait for it, and Ruby would end the process.
  def test_one_that_a_thread_waits_at
    assert_equal "true\nfalse\nfalse\n", run_ruby(<<~RUBY)
      waiting = ->(selector) { Queue.new.tap { |begun| Thread.new { selector.select(begun) } }.pop }
      waiting.call(NIO::Selector.new)
      puts safe?
      Libraries.watch
      begin
        forked
      rescue Libraries::Unsafe
        puts safe?
      end
      waiting.call(NIO::Selector.new)
      NIO::Selector.new.close
      puts safe?
    RUBY
  end

  def test_one_of_action_cables_event_loop_does_not_count_until_the_fork
    script = <<~RUBY
      Libraries.watch
      eval("$selector = NIO::Selector.new", binding, "/gems/lib/action_cable/connection/stream_event_loop.rb")
      puts safe?
      begin
        forked # nothing has closed it
      rescue Libraries::Unsafe
        puts safe?
      end
    RUBY

    assert_equal "true\nfalse\n", run_ruby(script)
  end

  # A mold forks all the same: there may be none else.
  def test_a_mold_says_so_and_forks
    assert_equal "nio4r: a selector is open, and a child would share its epoll set\nforked\n", run_ruby(<<~RUBY)
      selector = NIO::Selector.new
      told = ->(library, error) { puts "\#{library}: \#{error.message}" }
      puts Libraries.around_fork(on_failure: told) { "forked" }
    RUBY
  end

  private

  def run_ruby(script)
    command = [RbConfig.ruby, "-w", "-I", Support::Checkout.path("lib"), "-e", STAND_IN + script]
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, *command)
    assert_predicate status, :success?, output
    output
  end
end

# frozen_string_literal: true

require "test_helper"
require "openssl"
require "securerandom"
require "pando/fork_safety"

class ForkSafetyTest < Minitest::Test
  # Runs the block in a child; returns what it returned, as text.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.syswrite(yield.to_s)
    ensure
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    reader.close
    Process.wait(pid)
  end

  def test_a_process_is_fork_safe_until_it_says_otherwise_and_so_are_its_children
    assert_predicate Pando, :fork_safe?
    answers = in_child do
      line = __LINE__ + 1
      Pando.no_longer_fork_safe!
      told = []
      Pando::ForkSafety.on_unsafe { |reason| told << reason } # told at once
      Pando.no_longer_fork_safe!("again")
      [Pando.fork_safe?, told == ["called at #{__FILE__}:#{line}:in #{told.first[/in (.*)/, 1]}"],
       in_child { Pando.fork_safe? }]
    end

    assert_equal "[false, true, \"false\"]", answers
    assert_predicate Pando, :fork_safe?
  end

  def test_the_installed_block_is_told_once_with_the_reason
    told = in_child do
      told = []
      Pando::ForkSafety.on_unsafe { |reason| told << reason }
      2.times { Pando.no_longer_fork_safe!("native threads") }
      told
    end

    assert_equal '["native threads"]', told
  end

  def test_an_obstacle_can_be_cleared
    told = in_child do
      told = []
      Pando::ForkSafety.on_unsafe { |reason| told << reason }
      Pando::ForkSafety.obstruct(:one, "one")
      Pando::ForkSafety.obstruct(:two, "two")
      Pando::ForkSafety.clear(:one)
      told << Pando.fork_safe?
      Pando::ForkSafety.clear(:two)
      Pando::ForkSafety.clear(:two)
      told << Pando.fork_safe?
    end

    assert_equal '["one", false, nil, true]', told
  end

  # A child of a worker has the worker's row of the scoreboard, too.
  def test_what_a_child_does_is_not_told_of_its_parent
    told = in_child do
      reader, writer = IO.pipe
      Pando::ForkSafety.obstruct(:one, "one")
      Pando::ForkSafety.on_unsafe { |reason| writer.puts(reason || "safe") }
      in_child { Pando::ForkSafety.clear(:one) }
      Pando::ForkSafety.clear(:one)
      in_child { Pando.no_longer_fork_safe!("in a child") }
      writer.close
      [reader.read, Pando.fork_safe?]
    end

    assert_equal '["one\nsafe\n", true]', told
  end

  def test_no_obstacle_hides_what_is_for_good
    told = in_child do
      Pando::ForkSafety.obstruct(:one, "one")
      Pando.no_longer_fork_safe!("for good")
      Pando::ForkSafety.clear(:one)
      [Pando.fork_safe?, Pando::ForkSafety.reason]
    end

    assert_equal '[false, "for good"]', told
  end

  def test_the_connections_that_were_taken_over_are_counted_while_they_are_open
    told = in_child do
      Pando::ForkSafety.after_fork # drops those of other tests
      sockets = Array.new(2) { UNIXSocket.pair.first.tap { |socket| Pando::ForkSafety::Descriptors.keep_from_children(socket) } }
      before = Pando::ForkSafety.connections
      sockets.first.close
      [before, Pando::ForkSafety.connections, in_child do
        [Pando::ForkSafety.after_fork, Pando::ForkSafety.connections].last
      end]
    end

    assert_equal '[2, 1, "0"]', told
  end

  def test_siblings_draw_different_numbers
    # Use each generator before the fork, so that there is a state to inherit.
    [rand, Random.rand, SecureRandom.hex, OpenSSL::Random.random_bytes(16), [1, 2].shuffle]
    draws = Array.new(3) do
      in_child do
        Pando::ForkSafety.after_fork
        [rand(2**64), Random.rand(2**64), (1..1000).to_a.sample(20).join, SecureRandom.hex,
         OpenSSL::Random.random_bytes(16).unpack1("H*"), OpenSSL::BN.rand(128)].join(" ")
      end.split
    end

    assert_equal [6], draws.map(&:size).uniq
    draws.transpose.each { |same_generator| assert_equal same_generator.uniq, same_generator }
  end

  def test_after_fork_renews_the_default_generator_even_if_it_was_seeded
    first, second = Array.new(2) do
      in_child do
        srand(42)
        Pando::ForkSafety.after_fork
        rand(2**64)
      end
    end

    refute_equal first, second
  end

  def test_a_random_object_of_the_app_is_left_alone
    own = Random.new(42)
    expected = Random.new(42).rand(2**64)
    drawn = in_child do
      Pando::ForkSafety.after_fork
      own.rand(2**64)
    end

    assert_equal expected.to_s, drawn
  end

  def test_after_fork_does_without_openssl
    code = 'require "pando/fork_safety"; Pando::ForkSafety.renew_randomness; ' \
           "exit !defined?(OpenSSL)"

    assert system({ "RUBYOPT" => nil }, RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", code)
  end
end

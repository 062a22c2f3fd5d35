# frozen_string_literal: true

require "test_helper"
require "pando/server/fork_care"
require "support/in_child"

# What a worker is connected to before it serves.
class ReconnectionTest < Minitest::Test
  include Support::InChild

  # As much of ActiveRecord's as is asked for.
  Pool = Struct.new(:db_config, :connected, :answer) do
    alias_method :connected?, :connected

    def with_connection = yield self

    def verify!
      answer&.call
      self.connected = true
    end
  end

  def test_what_its_mold_was_connected_to_before
    assert_equal [true, false], reconnected([pool(true), pool(false)])
  end

  def test_what_fails_is_left_to_the_first_request
    assert_equal [true, false], reconnected([pool(true), pool(true) { raise IOError, "nobody there" }])
  end

  def test_who_does_not_answer_is_not_waited_for
    assert_equal [false], reconnected([pool(true) { Queue.new.pop }], within: 0.01)
  end

  def test_a_pool_that_cannot_tell_is_no_reason_not_to_fork
    broken = pool(nil)
    broken.define_singleton_method(:connected?) { raise IOError }

    assert_equal [nil], reconnected([broken])
  end

  def test_nothing_without_activerecord
    assert_nil(in_child { Pando::Server::Reconnection.new.tap(&:note).run })
  end

  private

  def pool(connected, &answer) = Pool.new(Object.new, connected, answer)

  # @return [Array<Boolean>] what a child of the process that has these is connected to
  def reconnected(pools, **options)
    in_child do
      load_with(pools)
      reconnection = Pando::Server::Reconnection.new(**options).tap(&:note)
      pools.each { |one| one.connected &&= false }
      reconnection.run
      pools.map(&:connected)
    end
  end

  def load_with(pools)
    handler = Struct.new(:pools) { def connection_pool_list(_role) = pools }.new(pools)
    base = Struct.new(:connection_handler).new(handler)
    Object.const_set(:ActiveRecord, Module.new).const_set(:Base, base)
    ActiveRecord.const_set(:VERSION, Module.new).const_set(:STRING, "8.0.0")
  end
end

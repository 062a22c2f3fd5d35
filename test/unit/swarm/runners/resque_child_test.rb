# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/in_child"
require "pando/pidfd"

# The process that runs a job of Resque. The gem is not there, so each test runs in a process that has stand-ins.
class SwarmResqueChildTest < Minitest::Test
  include Support::InChild

  Job = Struct.new(:payload_class_name)

  # Of the methods that a child uses, those that matter here.
  module Worker
    def term_timeout = 5
    def unregister_signal_handlers = nil
    def run_hook(*) = nil
    def reconnect = nil
    def forget_failures = nil
    def perform(_job) = sleep
  end

  # A job whose process goes on would be reported as failed, and run all the same.
  def test_a_node_that_cannot_watch_the_process_has_none
    result = in_child do
      node = worker
      begin
        Pando::Pidfd.stub(:new, ->(_) { raise Errno::EMFILE }) do
          Pando::Swarm::Runners::Resque::Child.new(node, Job.new("Mails"), "node", nil)
        end
      rescue Errno::EMFILE => e
        { raised: e.class.name, child: child? }
      end
    end

    assert_equal({ raised: "Errno::EMFILE", child: false }, result)
  end

  private

  def worker
    Object.const_set(:Redis, Class.new { const_set(:BaseConnectionError, Class.new(StandardError)) })
    Object.const_set(:Resque, Class.new { const_set(:Worker, Class.new { include Worker }) })
    require "pando/swarm/runners/resque/child"
    Resque::Worker.new.tap { |worker| worker.singleton_class.attr_accessor :fork_per_job }
  end

  def child?
    Process.wait(-1, Process::WNOHANG)
    true
  rescue Errno::ECHILD
    false
  end
end

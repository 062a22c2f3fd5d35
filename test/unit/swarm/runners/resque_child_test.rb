# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/in_child"
require "pando/pidfd"

# The process that runs a job of Resque. The gem is not there, so each test runs in a process that has stand-ins.
class SwarmResqueChildTest < Minitest::Test
  include Support::InChild

  Job = Struct.new(:payload)

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
          Pando::Swarm::Runners::Resque::Child.new(node, Job.new({ "class" => "Mails" }), "node", nil)
        end
      rescue Errno::EMFILE => e
        { raised: e.class.name, child: child? }
      end
    end

    assert_equal({ raised: "Errno::EMFILE", child: false }, result)
  end

  # What is in Redis may come from anybody.
  def test_the_name_of_a_job_is_that_of_its_class_or_none
    wrapper = "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper"
    wrapped = [{ "job_class" => "Admin::WelcomeJob" }], nil, 7, [7], ["x"], [{}], { "job_class" => "A" }
    payloads = [{ "class" => "Mails", "args" => [{ "job_class" => "Other" }] },
                *wrapped.map { |arguments| { "class" => wrapper, "args" => arguments } },
                *[nil, 7, "", "a" * 101, "a\nb", "a\0", "a\e[2J", "a b", "\xff"].map { |name| { "class" => name } },
                { "class" => wrapper, "args" => [{ "job_class" => "x" * 200 }] }, { "class" => "Ünd::Ärger" }, nil, "x"]
    names = in_child do
      worker
      payloads.map { |payload| Pando::Swarm::Runners::Resque::Child.name_of(payload) }
    end

    assert_equal ["Mails", "Admin::WelcomeJob", *[wrapper] * 6, *["?"] * 9, wrapper, "Ünd::Ärger", "?", "?"], names
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

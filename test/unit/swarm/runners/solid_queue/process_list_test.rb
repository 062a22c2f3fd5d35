# frozen_string_literal: true

require "test_helper"
require "support/in_child"

# Which of Solid Queue's processes a node runs. The gem is not there, so each test runs in a process that has stand-ins.
class SolidQueueProcessListTest < Minitest::Test
  include Support::InChild

  Configured = Struct.new(:kind, :attributes)
  Task = Struct.new(:class_name)
  Node = Struct.new(:number, :queues, :concurrency)

  # What Solid Queue's own classes have in common here.
  class Process
    def initialize(**) = nil
  end

  def test_two_nodes_schedule_tasks_that_solid_queue_enqueues_once
    assert_equal [%w[Dispatcher Scheduler], %w[Dispatcher Scheduler], []], others(tasks: ["Ours", nil])
  end

  # Nothing is left of a job that has finished, so another scheduler would enqueue it again.
  def test_one_node_schedules_where_finished_jobs_are_deleted
    assert_equal [%w[Dispatcher Scheduler], %w[Dispatcher], []], others(tasks: ["Ours"], preserve: false)
  end

  def test_one_node_schedules_a_task_that_goes_to_another_adapter
    assert_equal [%w[Dispatcher Scheduler], %w[Dispatcher], []], others(tasks: %w[Ours Theirs])
  end

  def test_one_node_schedules_commands_where_they_go_to_another_adapter
    assert_equal [%w[Dispatcher Scheduler], %w[Dispatcher], []], others(tasks: [nil], default: "Theirs")
  end

  # An invalid task; Solid Queue leaves it out.
  def test_a_class_that_is_missing_does_not_count
    assert_equal [%w[Dispatcher Scheduler], %w[Dispatcher Scheduler], []], others(tasks: %w[Ours Missing])
  end

  private

  # @return [Array<Array<String>>] the processes of each of three nodes, except for its worker
  def others(tasks:, preserve: true, default: "Ours")
    in_child do
      define(tasks.map { |name| Task.new(name) }, preserve, default)
      Array.new(3) do |number|
        options = { queue_file: false, dispatchers: 2, polling_interval: nil }
        list = Pando::Swarm::Runners::SolidQueue::ProcessList.processes(Node.new(number, %w[*], 1), options)
        list.drop(1).map { |one| one.instance_variable_get(:@make).call.class.name[/\w+\z/] }
      end
    end
  end

  def define(tasks, preserve, default)
    library = Object.const_set(:SolidQueue, Module.new)
    library.define_singleton_method(:preserve_finished_jobs?) { preserve }
    %i[Worker Dispatcher Scheduler].each { |name| library.const_set(name, Class.new(Process)) }
    define_jobs(library, default)
    configured = [Configured.new(:worker, {}), Configured.new(:dispatcher, {}),
                  Configured.new(:scheduler, { recurring_tasks: tasks })]
    library.const_set(:Configuration, Class.new { define_method(:configured_processes) { configured } })
    require "pando/swarm/runners/solid_queue/processes"
  end

  def define_jobs(library, default)
    { "Ours" => "solid_queue", "Theirs" => "async" }.each do |name, adapter|
      Object.const_set(name, Class.new { define_singleton_method(:queue_adapter_name) { adapter } })
    end
    task = library.const_set(:RecurringTask, Class.new)
    task.define_singleton_method(:default_job_class) { Object.const_get(default) }
    String.define_method(:safe_constantize) { Object.const_get(self) if Object.const_defined?(self) }
    Object.define_method(:presence) { self }
  end
end

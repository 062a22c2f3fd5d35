# frozen_string_literal: true

require "pando/fork_safety"
require_relative "../../sys/support/in_child"

# For tests of background threads: each has its own in a child of its own.
module ThreadCase
  include SysSupport::InChild

  Safety = Pando::ForkSafety

  # What the block of the thread did, in whatever process: lines "pid what".
  class Diary
    def initialize
      @reader, @writer = IO.pipe
    end

    def note(what) = @writer.syswrite("#{Process.pid} #{what}\n")
    def gets = @reader.gets.chomp

    # @return [Hash{Integer => Array<String>}] by process, once all of them have ended or say no more
    def to_h
      @writer.close
      notes = @reader.read.lines(chomp: true).map(&:split)
      notes.group_by { |pid, _| pid.to_i }.transform_values { |all| all.map(&:last) }
    end
  end

  def noting(diary, name = "notes", **options)
    Safety.thread(name, **options) do |thread|
      while (item = thread.pop)
        diary.note(item)
      end
    end
  end

  def wait_empty(thread) = wait_until(message: "an empty queue") { thread.empty? }

  def in_fork
    pid = fork do
      yield
    ensure
      leave
    end
    Process.wait(pid)
    pid
  end

  # What the kernel calls the threads of this process.
  def names = Dir.children("/proc/self/task").map { |task| File.read("/proc/self/task/#{task}/comm").chomp }
end

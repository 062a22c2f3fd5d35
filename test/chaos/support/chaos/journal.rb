# frozen_string_literal: true

require "chaos/tail"

module Chaos
  # What the application has written down: each request that it was called for, in which process.
  class Journal
    # @param path [String] appended to by the server's processes
    # @yieldparam id [String] of a request that has changed something twice
    def initialize(path, &twice)
      @tail = Tail.new(path)
      @twice = twice
      @pids = Hash.new { |pids, id| pids[id] = [] }
    end

    # Takes what has been written since.
    def read = @tail.each { |words| take(*words) }

    # @return [Array<Integer>] in which processes it was begun
    def pids(id) = @pids.fetch(id, [])

    # Nobody asks for it any more.
    def forget(id) = @pids.delete(id)

    private

    def take(verb, id, pid)
      pids = @pids[id] << pid.to_i
      @twice.call("#{verb} #{id} was done #{pids.size} times, in #{pids.join(", ")}") if pids.size > allowed(verb)
    end

    # A GET may be tried again, once.
    def allowed(verb) = verb == "GET" ? 2 : 1
  end
end

# frozen_string_literal: true

require "chaos/tail"

module Chaos
  # Reads the application's own record of the requests that reached it, and in which process.
  class Journal
    # @param path [String] of a file that the server's processes append to
    # @param tries [Integer] how often a GET may begin
    # @yieldparam id [String] of a request that has changed something twice
    def initialize(path, tries: 2, &twice)
      @tail = Tail.new(path)
      @tries = tries
      @twice = twice
      @pids = Hash.new { |pids, id| pids[id] = [] }
    end

    # Reads what was appended since the last call.
    def read = @tail.each { |words| take(*words) }

    # @return [Array<Integer>] pids in which it was started
    def pids(id) = @pids.fetch(id, [])

    # Forgets a request.
    def forget(id) = @pids.delete(id)

    private

    def take(verb, id, pid)
      pids = @pids[id] << pid.to_i
      @twice.call("#{verb} #{id} was done #{pids.size} times, in #{pids.join(", ")}") if pids.size > allowed(verb)
    end

    def allowed(verb) = verb == "GET" ? @tries : 1
  end
end

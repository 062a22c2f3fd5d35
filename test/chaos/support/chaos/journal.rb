# frozen_string_literal: true

module Chaos
  # What the application has written down: each request that it was called for, in which process.
  class Journal
    # @param path [String] appended to by the server's processes
    # @yieldparam id [String] of a request that has changed something twice
    def initialize(path, &twice)
      @path = path
      @twice = twice
      @offset = 0
      @pids = Hash.new { |pids, id| pids[id] = [] }
    end

    # Takes what has been written since.
    def read
      return unless File.exist?(@path)

      text = File.binread(@path, nil, @offset)
      text = text[0, (text.rindex("\n") || -1) + 1]
      @offset += text.bytesize
      text.each_line { |line| take(*line.split) }
    end

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

# frozen_string_literal: true

module Chaos
  # What processes of the server append to a file, line by line.
  class Tail
    # @param path [String] of a file that there may not be yet
    def initialize(path)
      @path = path
      @offset = 0
    end

    # @yieldparam words [Array<String>] of each whole line that has been written since
    def each(&block)
      return unless File.exist?(@path)

      text = File.binread(@path, nil, @offset)
      text = text[0, (text.rindex("\n") || -1) + 1]
      @offset += text.bytesize
      text.each_line.map(&:split).each(&block)
    end
  end
end

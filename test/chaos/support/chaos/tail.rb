# frozen_string_literal: true

module Chaos
  # Reads lines that the server's processes append to a file.
  class Tail
    # @param path [String] of a file that may not exist yet
    def initialize(path)
      @path = path
      @offset = 0
    end

    # @yieldparam words [Array<String>] of each complete line since the last call
    def each(&block)
      return unless File.exist?(@path)

      text = File.binread(@path, nil, @offset)
      text = text[0, (text.rindex("\n") || -1) + 1]
      @offset += text.bytesize
      text.each_line.map(&:split).each(&block)
    end
  end
end

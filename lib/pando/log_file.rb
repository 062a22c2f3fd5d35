# frozen_string_literal: true

require "pando/errors"

module Pando
  # A file that other processes will write. Used by the monitor, at the start of a server.
  #
  # @api private
  module LogFile
    # The path that means standard output.
    STANDARD_OUTPUT = "-"
    MODE = 0o640

    # Whether it can be written, as far as that can be known now. Makes it if it is missing.
    #
    # @param path [String, nil] nil: there is to be none
    def self.check(setting, path)
      return if path.nil? || path == STANDARD_OUTPUT
      return if File.pipe?(path) # to open one without a reader takes for ever

      File.open(path, File::WRONLY | File::APPEND | File::CREAT, MODE, &:close)
    rescue SystemCallError => e
      raise BootError, "#{setting} cannot be written: #{e.message.sub(" @ rb_sysopen", "")}. Make the folder, let " \
                       "the server's user write there, or name another file"
    end
  end
end

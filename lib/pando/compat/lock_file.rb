# frozen_string_literal: true

module Pando
  module Compat
    # Finds out which gems an application has by reading its Gemfile.lock, without loading anything.
    module LockFile
      module_function

      def names?(directory, gem, env: ENV)
        gemfile = env["BUNDLE_GEMFILE"].to_s
        files = [*("#{gemfile}.lock" unless gemfile.empty?), File.join(directory, "Gemfile.lock"),
                 File.join(directory, "gems.locked")]
        file = files.find { |path| File.file?(path) } or return false
        File.read(file).match?(/^ {4}#{Regexp.escape(gem)} \(/)
      rescue SystemCallError
        false
      end
    end
  end
end

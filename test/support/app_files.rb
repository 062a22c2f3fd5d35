# frozen_string_literal: true

require "fileutils"

module Support
  # For tests that write the files of an application into @folder.
  module AppFiles
    private

    def write(name, text)
      path = File.join(@folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end
  end
end

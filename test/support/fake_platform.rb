# frozen_string_literal: true

# Preloaded (RUBYOPT=-r...) into a process to make it believe that it runs on a Mac.
require "rbconfig"

Object.send(:remove_const, :RUBY_PLATFORM)
RUBY_PLATFORM = "arm64-darwin23"
RbConfig::CONFIG["host_os"] = "darwin23"
RbConfig::CONFIG["arch"] = RUBY_PLATFORM

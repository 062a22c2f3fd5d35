# frozen_string_literal: true

# The suite reforks between its examples (docs/testing.md). To be required before the app is, by
# `--require pando/rspec` in .rspec or by spec_helper.rb.
# Off Linux the suite runs as it does without this line.
require "rspec/core"
require "pando/platform"
require "pando/testing"
if Pando::Platform.linux?
  require "pando/testing/rspec_plug"
  Pando::Testing::RSpecPlug.install
else
  warn "pando: the suite runs without reforks: they need Linux, and this is #{Pando::Platform.name}"
end

# frozen_string_literal: true

# For the apps and configurations of {Support::ServerProcess}, which loads it there: where a test holds them up.
module Kernel
  private

  # Until the test creates this file.
  def hold_until(file)
    sleep 0.005 until File.exist?(file)
  end

  # Until the test removes this file.
  def hold_while(file)
    sleep 0.005 while File.exist?(file)
  end
end
